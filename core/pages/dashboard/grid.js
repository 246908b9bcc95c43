// The jobs of a sweep as squares: a row for each variant, a column for each task, and in it a
// square for each seed. Updated in place; a square is a link to its job.
import { make, setText } from './dom.js';
import { STATES } from './format.js';
import { interval, percent, visible } from '../charts/text.js';

const describe = (job) => {
  let text =
    `${job.pe_label}, ${job.task}, seed ${job.seed}: ${STATES[job.state]?.text ?? job.state}`;
  if (job.trained && job.state === 'running') text += ', adding analyses';
  else if (job.state === 'running' || (job.epochs_done > 0 && job.epochs_done < job.epochs))
    text += `, epoch ${job.epochs_done} of ${job.epochs}`;
  if (job.test_accuracy !== null) text += `, test accuracy ${percent(job.test_accuracy)}`;
  if (job.diverged) text += ', diverged';
  if (job.error) text += `. ${job.error}`;
  if (job.warning) text += `. ${job.warning}`;
  return text;
};

class Square {
  constructor(jobId, seed, sweep) {
    this.element = make('a', 'square', '·', {
      href: `/jobs/${jobId}?sweep=${encodeURIComponent(sweep)}`, tabindex: '-1'
    });
    this.seed = seed;
  }

  update(job) {
    this.job = job;
    // The progress in tenths, as a class. In the browser, an element that ever had a style
    // attribute keeps a style of its own, which takes two kilobytes.
    const tenths = job.state === 'running' && job.epochs > 0
      ? ` done-${Math.floor((10 * job.epochs_done) / job.epochs)}` : '';
    const className = `square state-${job.state}${tenths}`
                      + (job.diverged ? ' diverged' : '') + (job.warning ? ' warned' : '');
    if (this.element.className !== className) {
      this.element.className = className;
      setText(this.element, job.diverged ? '!' : STATES[job.state]?.glyph ?? '?');
    }
    const text = visible(describe(job));
    if (this.text !== text) {
      this.text = text;
      this.element.setAttribute('aria-label', text);
    }
  }
}

export class Grid {
  // `sweep` is the sweep's number, for the links to its jobs.
  constructor(element, sweep) {
    this.element = element;
    this.sweep = sweep;
    this.squares = new Map();  // by job number
    this.tip = make('div', 'tip', '', { role: 'tooltip', 'aria-hidden': 'true' });
    this.tip.hidden = true;
    element.addEventListener('keydown', (event) => this.onKey(event));
    for (const name of ['focusin', 'pointerover'])
      element.addEventListener(name, (event) => this.point(event.target));
    for (const name of ['focusout', 'pointerleave'])
      element.addEventListener(name, () => { this.tip.hidden = true; });
  }

  // Draws the whole grid again. `answer` is the response of /sweeps/ID/cells.
  build(answer, jobs) {
    const byId = new Map(jobs.map((job) => [job.job_id, job]));
    const old = this.squares;
    this.squares = new Map();
    this.summaries = new Map();
    const tasks = [...new Set(answer.cells.map((cell) => cell.task))];
    const others = answer.columns.filter((name) => name !== 'task');
    const rows = new Map();
    for (const cell of answer.cells) {
      const key = JSON.stringify(others.map((name) => cell[name]));
      if (!rows.has(key))
        rows.set(key, { names: others.map((name) => cell[name]), byTask: new Map() });
      rows.get(key).byTask.set(cell.task, cell);
    }
    const table = make('table', 'grid-table');
    const head = make('tr');
    head.append(make('th', '', others.join(' · '), { scope: 'col' }),
                ...tasks.map((task) => make('th', '', task, { scope: 'col' })));
    const body = make('tbody');
    for (const row of rows.values()) body.append(this.makeRow(row, tasks, byId, old));
    const top = make('thead');
    top.append(head);
    table.append(top, body);
    this.order = [...this.squares.values()];
    if (this.order.length) this.order[0].element.tabIndex = 0;
    this.element.replaceChildren(table, this.tip);
  }

  makeRow(row, tasks, byId, old) {
    const made = make('tr');
    const name = make('th', 'variant', undefined, { scope: 'row' });
    name.append(make('bdi', '', row.names.join(' · ')));
    made.append(name);
    for (const task of tasks) {
      const box = make('td', '', undefined, { 'data-label': visible(task) });
      const cell = row.byTask.get(task);
      if (cell) box.append(this.makeCell(cell, byId, old));
      made.append(box);
    }
    return made;
  }

  makeCell(cell, byId, old) {
    const made = make('div', 'seeds');
    const ids = cell.job_ids.map((id) => ({ id, job: byId.get(id) }))
      .sort((a, b) => (a.job?.seed ?? 0) - (b.job?.seed ?? 0));
    const squares = make('div', 'squares');
    for (const { id, job } of ids) {
      const square = old.get(id) ?? new Square(id, job?.seed, this.sweep);
      square.element.tabIndex = -1;
      if (job) square.update(job);
      this.squares.set(id, square);
      squares.append(square.element);
    }
    const summary = make('span', 'cell-mean figure');
    this.summaries.set(cell.job_ids[0], summary);
    made.append(squares, summary);
    this.summarize(cell, summary);
    return made;
  }

  summarize(cell, summary) {
    setText(summary, cell.n > 0 ? interval(cell.mean, cell.half_width) : '');
    summary.classList.toggle('incomplete', cell.n > 0 && !cell.complete);
    const seeds = cell.n + cell.missing + cell.failed + cell.cancelled;
    summary.title = cell.n > 0 ? `final test accuracy, mean of ${cell.n} of ${seeds} seeds` : '';
  }

  // Shows new summaries of the same groups. Returns false if the groups are others; build must then
  // be called.
  updateCells(answer) {
    if (answer.cells.length !== this.summaries.size) return false;
    for (const cell of answer.cells) {
      const summary = this.summaries.get(cell.job_ids[0]);
      if (!summary || cell.job_ids.some((id) => !this.squares.has(id))) return false;
      this.summarize(cell, summary);
    }
    return true;
  }

  // Updates the jobs' squares; returns whether each job has one.
  updateJobs(jobs) {
    let known = true;
    for (const job of jobs) {
      const square = this.squares.get(job.job_id);
      if (square) square.update(job); else known = false;
    }
    if (!this.tip.hidden && this.pointed) setText(this.tip, this.pointed.text);
    return known;
  }

  squareOf(target) {
    return target instanceof Element && target.classList.contains('square')
      ? this.order.find((square) => square.element === target) : null;
  }

  point(target) {
    const square = this.squareOf(target);
    this.pointed = square;
    if (!square) { this.tip.hidden = true; return; }
    setText(this.tip, square.text);
    this.tip.hidden = false;
    const box = this.element.getBoundingClientRect(), at = target.getBoundingClientRect();
    this.tip.style.maxWidth = `${Math.min(420, box.width)}px`;
    this.tip.style.left =
      `${Math.max(0, Math.min(at.left - box.left, box.width - this.tip.offsetWidth))}px`;
    this.tip.style.top = `${at.bottom - box.top + 6}px`;
  }

  onKey(event) {
    const square = this.squareOf(event.target);
    if (!square || event.ctrlKey || event.metaKey || event.altKey) return;
    const index = this.order.indexOf(square);
    const next = {
      ArrowRight: () => this.order[index + 1], ArrowLeft: () => this.order[index - 1],
      ArrowDown: () => this.inRow(square, 1), ArrowUp: () => this.inRow(square, -1),
      Home: () => this.order[0], End: () => this.order[this.order.length - 1],
    }[event.key]?.();
    if (!next) return;
    event.preventDefault();
    square.element.tabIndex = -1;
    next.element.tabIndex = 0;
    next.element.focus();
  }

  // The nearest square in the rows below (step 1) or above (step -1).
  inRow(square, step) {
    const at = square.element.getBoundingClientRect();
    let best = null, distance = Infinity;
    for (const other of this.order) {
      const box = other.element.getBoundingClientRect();
      const down = (box.top - at.top) * step;
      if (down < 4) continue;
      const far = down * 8 + Math.abs(box.left - at.left);
      if (far < distance) { distance = far; best = other; }
    }
    return best;
  }
}
