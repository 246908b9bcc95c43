// The page of all sweeps, newest first.
import { empty, link, make, setText } from './dom.js';
import { clock } from './format.js';
import { get, listen } from './live.js';
import { jobsText, stateBar, sweepState, timeLeft, countsText } from './progress.js';

function makeRow(sweep) {
  const element = make('li', 'sweep');
  const head = make('div', 'sweep-head');
  const name = link(`/sweeps/${sweep.sweep_id}`, sweep.name, 'sweep-name');
  const state = make('span', 'chip');
  head.append(name, state);
  const bar = stateBar();
  const facts = make('div', 'facts muted');
  const jobs = make('span'), left = make('span'),
        made = make('span', '', `submitted ${clock(sweep.created_at_ms)}`);
  const protocol = make('span', '', sweep.protocol);
  facts.append(jobs, left, protocol, made);
  const note = make('p', 'warning');
  element.append(head, bar.element, facts, note);
  const update = (now) => {
    setText(state, sweepState(now));
    state.className = `chip sweep-${sweepState(now)}`;
    bar.update(now);
    setText(jobs, `${jobsText(now)}: ${countsText(now)}`);
    setText(left, timeLeft(now));
    left.title = now.progress.based_on;
    setText(note, now.waiting_reason ?? '');
    note.hidden = !now.waiting_reason;
  };
  update(sweep);
  return { element, update };
}

export async function showSweeps(main) {
  document.title = 'Sweeps · pelab';
  const list = make('ul', 'sweeps');
  const nothing = empty('No sweep has been submitted yet. `pelab submit SWEEP.yaml` does that.');
  const slots = make('p', 'muted');
  const more = make('button', 'tool', 'Older sweeps', { type: 'button' });
  main.append(make('h1', '', 'Sweeps'), slots, nothing, list, more);
  const rows = new Map();
  const show = (sweeps, atEnd) => {
    const way = atEnd ? -1 : 1;
    for (const sweep of [...sweeps].sort((a, b) => way * (a.sweep_id - b.sweep_id))) {
      const row = rows.get(sweep.sweep_id);
      if (row) { row.update(sweep); continue; }
      const made = makeRow(sweep);
      rows.set(sweep.sweep_id, made);
      if (atEnd) list.append(made.element); else list.prepend(made.element);
    }
    nothing.hidden = rows.size > 0;
  };
  let next = null;
  const page = async (after) => {
    const answer = await get(`/sweeps?limit=50${after ? `&after=${after}` : ''}`);
    show(answer.sweeps, true);
    next = answer.next;
    more.hidden = next === null;
  };
  more.addEventListener('click', () => page(next));
  await page(null);
  listen('/events', {
    sweeps: ({ rows: sweeps }) => show(sweeps.filter(
      (sweep) => rows.has(sweep.sweep_id) || !rows.size || sweep.sweep_id > Math.min(...rows.keys())
    ), false),
    workers: ((known) => ({ all, rows: workers }) => {
      if (all) known.clear();
      for (const worker of workers) known.set(worker.worker_id, worker);
      const online = [...known.values()].filter((worker) => worker.connected);
      const busy = online.reduce((sum, worker) => sum + worker.busy_slots, 0),
            all_slots = online.reduce((sum, worker) => sum + worker.slots, 0);
      setText(slots, online.length
        ? `${online.length} of ${known.size} workers connected, `
          + `${busy} of ${all_slots} slots busy`
        : 'No worker is connected.');
    })(new Map()),
  });
}
