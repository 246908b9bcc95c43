// The page of a sweep: progress, the grid of its jobs, curves with a band over the seeds, head
// ablations, claims.
import * as shown from '../charts/claims.js';
import { standing } from '../charts/text.js';
import { card, empty, make, select, setText, throttled } from './dom.js';
import { liveChart, loadCharts } from './charts.js';
import { mayWrite, sweepControls } from './control.js';
import { clock, count, groupLabel, withShortHashes } from './format.js';
import { Grid } from './grid.js';
import { get, listen } from './live.js';
import { SeedValues } from './seed_values.js';
import { jobsText, stateBar, stateCounts, sweepState, timeLeft } from './progress.js';

const CURVE_METRICS = [['test_accuracy', 'test accuracy'], ['train_accuracy', 'training accuracy'],
                       ['train_eval_accuracy', 'training accuracy without dropout'],
                       ['test_loss', 'test loss'], ['train_loss', 'training loss']];
const DROP_METRICS = [['accuracy_drop', 'accuracy drop'], ['nll_drop', 'rise of the loss'],
                      ['normalised_drop', 'normalized drop']];
const MAPS_AT_ONCE = 6;
const MOST_JOBS = 20000;  // the API combines no more jobs than this
const ENDED = new Set(['succeeded', 'failed', 'cancelled']);

function header(main) {
  const title = make('h1'), state = make('span', 'chip'), facts = make('p', 'muted');
  const bar = stateBar(), counts = stateCounts();
  const left = make('p', 'left'), basis = make('p', 'muted small'), note = make('p', 'notice');
  const remark = make('p', 'remark');
  const line = make('div', 'title-line');
  line.append(title, state);
  const controls = mayWrite() ? sweepControls() : null;
  main.append(line, facts, remark, ...(controls ? [controls.element, controls.said] : []),
              card(null, left, bar.element, counts.element, basis, note));
  return (sweep) => {
    document.title = `${sweep.name} · pelab`;
    setText(title, sweep.name);
    setText(state, sweepState(sweep));
    state.className = `chip sweep-${sweepState(sweep)}`;
    // A round of a claim sheet adds seeds to the cells of open claims, "6 of 0..1,4". The list of
    // its rounds is long.
    const rounds = sweep.extensions.filter((added) => added.includes(' of ')).length;
    const added = rounds > 0 ? `by ${count(rounds, 'round')} of its claim sheet`
      : sweep.extensions.join(', ');
    setText(facts, `sweep ${sweep.sweep_id} · ${sweep.protocol} protocol · `
                   + `priority ${sweep.priority} · submitted ${clock(sweep.created_at_ms)}`
                   + (added ? ` · seeds added: ${added}` : ''));
    setText(left, `${jobsText(sweep)}${sweep.diverged ? ` (${sweep.diverged} diverged)` : ''} · `
                  + `${count(sweep.epochs_done, 'epoch')} of `
                  + `${sweep.epochs_total.toLocaleString('en-US')} · ${timeLeft(sweep)}`);
    setText(basis, `Estimate: ${sweep.progress.based_on}.`);
    bar.update(sweep);
    counts.update(sweep);
    setText(note, sweep.waiting_reason ?? '');
    note.hidden = !sweep.waiting_reason;
    setText(remark, sweep.note ?? '');
    remark.hidden = !sweep.note;
    controls?.update(sweep);
  };
}

async function allJobs(id) {
  const jobs = [];
  for (let after = ''; after !== null && jobs.length <= MOST_JOBS;) {
    const page = await get(`/sweeps/${id}/jobs?limit=10000${after && `&after=${after}`}`);
    jobs.push(...page.jobs);
    after = page.next;
  }
  return jobs;
}

// The label of a group in the charts, within one task.
function labelOf(cell, columns) {
  return groupLabel(cell, columns.filter((name) => name !== 'task'));
}

class Curves {
  constructor(id, place, tools) {
    this.id = id;
    this.metric = 'test_accuracy';
    this.cells = new Map();  // by the number of their first job
    this.place = place;
    this.tools = tools;
    this.task = null;
    const metrics = CURVE_METRICS.map(([value, text]) => ({ value, text }));
    this.tools.append(select('Metric', metrics, this.metric, (metric) => {
      this.metric = metric;
      this.cells.clear();
      this.chart?.destroy();
      this.chart = null;
      this.load([]);
    }));
  }

  // Loads the curves of these jobs' groups, or of all groups if `jobs` is empty.
  async load(jobs) {
    const wanted = jobs.length ? `&job=${jobs.join(',')}` : '';
    const metric = this.metric;
    const answer = await get(`/sweeps/${this.id}/curves?metric=${metric}${wanted}`);
    if (metric !== this.metric) return;
    withShortHashes(answer, answer.cells);
    if (!wanted) { this.columns = answer.columns; this.cells.clear(); }
    for (const cell of answer.cells) {
      const key = cell.job_ids[0];
      // In an answer for few jobs, fewer columns may tell the groups apart; the names stay those of
      // the full answer.
      this.cells.set(key, wanted ? { ...this.cells.get(key), seeds: cell.seeds,
                                     points: cell.points } : cell);
    }
    this.show();
  }

  // Reloads the groups of these jobs, which have new epochs.
  refresh(ids) {
    const jobs = new Set();
    for (const cell of this.cells.values()) {
      if (cell.job_ids.some((id) => ids.has(id))) for (const id of cell.job_ids) jobs.add(id);
    }
    const most = 400;  // more would make the URL too long
    return this.load(jobs.size > most ? [] : [...jobs]);
  }

  show() {
    const cells = [...this.cells.values()];
    const tasks = [...new Set(cells.map((cell) => cell.task))];
    if (!tasks.includes(this.task)) this.task = tasks[0];
    if (tasks.length > 1 && !this.taskList) {
      this.taskList = select('Task', tasks.map((task) => ({ value: task, text: task })), this.task,
                             (task) => { this.task = task; this.show(); });
      this.tools.prepend(this.taskList);
    }
    const series = cells.filter((cell) => cell.task === this.task && cell.points.epoch.length)
      .map((cell) => {
        const { epoch, mean, half_width: half } = cell.points;
        return {
          label: labelOf(cell, this.columns), epochs: epoch, mean,
          low: mean.map((value, i) => (half[i] === null ? null : value - half[i])),
          high: mean.map((value, i) => (half[i] === null ? null : value + half[i])),
          n: cell.seeds, of: cell.job_ids.length, complete: cell.seeds === cell.job_ids.length,
        };
      });
    this.place.nothing.hidden = series.length > 0;
    this.place.chart.hidden = series.length === 0;
    if (!series.length) return;
    const name = CURVE_METRICS.find(([value]) => value === this.metric)[1];
    this.chart ??= liveChart(this.place.chart, 'drawCurves', {
      title: `${name} by epoch`,
      description: 'Lines are means over the seeds, as far as all of them that have begun have '
                   + 'come, without those that failed; bands are 95 % intervals of the mean '
                   + '(Student’s t).',
      name: `curves-${this.metric}`, height: 420, yLabel: name,
      percent: this.metric.endsWith('accuracy'),
    });
    this.chart.update({ series });
  }
}

class Maps {
  constructor(id, place, tools) {
    this.id = id;
    this.place = place;
    this.metric = 'accuracy_drop';
    this.shown = MAPS_AT_ONCE;
    this.charts = [];
    tools.append(select('Measure', DROP_METRICS.map(([value, text]) => ({ value, text })),
                        this.metric, (metric) => { this.metric = metric; this.load(); }));
    this.more = make('button', 'tool', 'Show more', { type: 'button' });
    this.more.addEventListener('click', () => { this.shown += MAPS_AT_ONCE; this.show(); });
  }

  async load() {
    const metric = this.metric;
    const answer = await get(`/sweeps/${this.id}/ablations?metric=${metric}`);
    if (metric !== this.metric) return;
    this.answer = withShortHashes(answer, answer.ablations);
    this.show();
  }

  // Updates the charts of matrices that are shown already; draws the others.
  show() {
    const { columns } = this.answer;
    const largest = (one) => Math.max(0, ...one.drops.flat().filter(Number.isFinite));
    const ablations = this.answer.ablations.map((one) => ({ one, drop: largest(one) }))
      .sort((a, b) => b.drop - a.drop).map(({ one }) => one);
    const percent = this.metric !== 'nll_drop';
    const all = ablations.flatMap((one) => [...one.drops.flat(), ...one.by_rank.drops.flat()]);
    const limit = Math.max(0, ...all.filter(Number.isFinite).map(Math.abs)) || undefined;
    const several = new Set(ablations.map((one) => one.analysis)).size > 1;
    const wanted = ablations.slice(0, this.shown).map((one) => {
      const ranks = one.seeds > 1 && !one.heads_differ;  // as in `pelab ablation`
      const { drops, n, significant } = ranks ? one.by_rank : one.by_index;
      return {
        key: JSON.stringify([this.metric, one.job_ids[0], one.analysis, ranks]),
        data: { values: drops, n, counts: significant, limit, ranks },
        title: groupLabel(one, columns),
        description: `mean of ${count(one.seeds, 'seed')}${ranks ? ' by rank' : ''}`
                     + (several ? `; ${one.analysis}` : ''),
        percent,
      };
    });
    const kept = new Map(this.charts.map((chart) => [chart.key, chart]));
    this.charts = wanted.map((want) => {
      const chart = kept.get(want.key) ?? this.make(want);
      kept.delete(want.key);
      chart.live.update(want.data);
      return chart;
    });
    for (const gone of kept.values()) { gone.live.destroy(); gone.box.remove(); }
    this.place.nothing.hidden = ablations.length > 0;
    this.place.chart.append(...this.charts.map((chart) => chart.box));
    this.more.hidden = ablations.length <= this.shown;
    this.place.chart.after(this.more);
  }

  make({ key, title, description, percent }) {
    const box = make('div');
    const live = liveChart(box, 'drawHeatMap', { title, description, name: `ablation-${title}`,
                                                 percent, unit: percent ? 'points' : 'nats' });
    return { key, box, live };
  }
}

// The claim sheets that are settled on the sweep. Most sweeps have none, and then no card.
class Claims {
  constructor(id, main) {
    this.id = id;
    this.main = main;
    this.sheets = new Map();  // by number: {words, verdicts, evidence, seeds}
  }

  async load() {
    const { sheets } = await get(`/sweeps/${this.id}/claims`);
    for (const sheet of sheets) if (sheet.claims.length) this.show(sheet);
  }

  make(sheet) {
    const words = make('p', 'muted small'), verdicts = make('div'), evidence = make('div');
    const sized = sheet.claims.filter(({ kind }) => kind !== undefined && kind !== 'most');
    const seeds = sized.length ? new SeedValues(this.id, sheet.sheet_id, sized) : null;
    this.main.append(card(`Claims: ${sheet.name}`, words, verdicts, evidence,
                          ...(seeds ? [seeds.element] : [])));
    return {
      words, seeds,
      verdicts: liveChart(verdicts, 'drawTable', { label: `Verdicts of ${sheet.name}` }),
      evidence: liveChart(evidence, 'drawEvidence', {
        title: `Evidence of ${sheet.name}`, name: `evidence-${sheet.name}`,
        description: 'The larger e-value of each claim after each round. A claim is decided above '
                     + 'its threshold, which falls as more claims are decided.',
      }),
    };
  }

  show(sheet) {
    if (!this.sheets.has(sheet.sheet_id)) this.sheets.set(sheet.sheet_id, this.make(sheet));
    const { words, verdicts, evidence, seeds } = this.sheets.get(sheet.sheet_id);
    const confirmatory = sheet.fresh_from <= sheet.first_seed;
    const rounds = count(sheet.ended_rounds, 'round');
    setText(words, `Registered ${clock(sheet.created_at_ms)}; ${rounds}; `
                   + (confirmatory ? 'its seeds came after that.'
                     : `seeds up to ${sheet.fresh_from - 1} were stored before.`));
    const rows = sheet.claims.map((claim) => ({
      ...claim, id: claim.claim, standing: standing(claim.standing), ...shown.cells(claim)
    }));
    verdicts.update({ columns: [
      { key: 'id', label: 'claim', kind: 'text' },
      { key: 'verdict', label: 'verdict', kind: 'verdict' },
      { key: 'standing', label: 'standing', kind: 'text',
        title: 'open: gets further seeds; given up: unlikely to be decided' },
      ...shown.columns], rows });
    evidence.update({ claims: rows.filter((claim) => claim.history.length) });
    seeds?.load();
  }
}

function section(main, title, about, nothing) {
  const tools = make('div', 'tools');
  const chart = make('div'), none = empty(nothing);
  none.hidden = true;
  main.append(card(title, make('p', 'muted small', about), tools, none, chart));
  return { tools, place: { chart, nothing: none } };
}

export async function showSweep(main, id) {
  const path = encodeURIComponent(id);
  const loadCells = (sweep) => get(`/sweeps/${sweep}/cells`)
    .then((answer) => withShortHashes(answer, answer.cells));
  const loading = Promise.all([loadCells(path), allJobs(path)]);
  loading.catch(() => {});  // reported where it is awaited
  // Before anything is shown, since the sweep may not exist.
  const sweep = await get(`/sweeps/${path}`);
  const showHead = header(main);
  showHead(sweep);
  const gridCard = card('Jobs', make(
    'p', 'muted small',
    'A square is a job, one for each seed. Arrow keys move, Enter opens. The figure is the mean '
    + 'final test accuracy with its 95 % interval; * marks cells with seeds missing or failed.'
  ));
  const place = make('div', 'grid', undefined,
                     { role: 'group', 'aria-label': 'Jobs by encoding, task and seed' });
  place.className = 'job-grid';
  const limits = make('p', 'muted small limits');
  gridCard.append(place, limits);
  main.append(gridCard);
  const [cells, jobs] = await loading;
  // The page is whole without it.
  get(`/sweeps/${path}/limits`).then(({ text }) => setText(limits, text)).catch(() => {});
  const grid = new Grid(place, sweep.sweep_id);
  grid.build(cells, jobs);
  requestAnimationFrame(() => setTimeout(() => performance.mark('pelab-grid-drawn')));
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));

  const curveCard = section(main, 'Convergence',
                            'Click or press an entry of the legend to hide it.',
                            'No epoch is stored yet.');
  const mapCard = section(
    main, 'Head ablation',
    'What each head is worth: how much worse the model gets without it. Means are of the drops as '
    + 'stored; where no figure stands, the drop may be chance in every seed. Where the encoding '
    + 'treats heads alike, seeds are put together by rank: 1 is each seed’s largest drop in the '
    + 'layer. The largest come first.',
    'No head ablation is stored yet.'
  );
  mapCard.place.chart.className = 'maps';
  const claims = new Claims(sweep.sweep_id, main);
  const curves = new Curves(sweep.sweep_id, curveCard.place, curveCard.tools);
  const maps = new Maps(sweep.sweep_id, mapCard.place, mapCard.tools);
  loadCharts().then(
    (charts) => charts.registerLabels(cells.cells.map((cell) => labelOf(cell, cells.columns)))
  );

  const byId = new Map(jobs.map((job) => [job.job_id, job]));
  const gone = new Set();  // jobs with new epochs that no curve shows yet
  const quietly = (work) => work.catch((error) => setText(curveCard.place.nothing, error.message));
  const refreshCurves = throttled(3000, () => {
    const ids = new Set(gone);
    gone.clear();
    if (!document.hidden || ids.size) quietly(curves.refresh(ids));
  });
  const takeCells = (answer) => {
    if (grid.updateCells(answer)) return;
    grid.build(answer, [...byId.values()]);
    gone.clear();
    quietly(curves.load([]));
  };
  const refreshCells = throttled(
    4000, () => quietly(loadCells(sweep.sweep_id).then(takeCells)));
  const refreshMaps = throttled(8000, () => quietly(maps.load()));
  const refreshClaims = throttled(8000, () => quietly(claims.load()));

  await Promise.all([curves.load([]), maps.load(), claims.load()]);
  listen(`/sweeps/${sweep.sweep_id}/events`, {
    sweep: ({ rows }) => rows.forEach(showHead),
    jobs: ({ rows }) => {
      let ended = false, more = false;
      for (const job of rows) {
        const before = byId.get(job.job_id);
        more ||= !before;
        ended ||= before && before.state !== job.state
          && (ENDED.has(job.state) || ENDED.has(before.state));
        if (!before || before.epochs_done !== job.epochs_done) gone.add(job.job_id);
        byId.set(job.job_id, job);
      }
      if (!grid.updateJobs(rows) || more || ended) refreshCells();
      if (gone.size) refreshCurves();
      if (ended) { refreshMaps(); refreshClaims(); }
    },
  });
}
