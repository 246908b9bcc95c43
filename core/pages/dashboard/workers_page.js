// The page of the workers: their slots and devices, and the time since each lease was renewed.
import { empty, link, make, setText } from './dom.js';
import { bytes, clock, duration } from './format.js';
import { get, listen } from './live.js';
import { percent } from '../charts/text.js';

// "cuda:0 · 87 % busy · 61.2 GiB of 139.8 GiB"
function describeLoad(load) {
  const busy = load.busy_percent === null ? 'load unknown' : `${load.busy_percent} % busy`;
  const memory = load.memory_total_bytes > 0
    ? ` · ${bytes(load.memory_used_bytes) || '0 B'} of ${bytes(load.memory_total_bytes)}` : '';
  return `${load.device} · ${busy}${memory}`;
}

class Gpu {
  constructor() {
    this.element = make('li', 'gpu');
    this.text = make('span', 'figure');
    this.meter = make('div', 'bar-line', undefined, { role: 'img' });
    this.busy = make('span', 'state-running');
    this.meter.append(this.busy);
    this.element.append(this.text, this.meter);
  }

  update(load) {
    const text = describeLoad(load);
    setText(this.text, text);
    this.meter.setAttribute('aria-label', text);
    this.busy.style.width = `${load.busy_percent ?? 0}%`;
  }
}

// "job 12", or "jobs 12, 13, 14": a trainer may run several jobs that differ only in their seed.
function linkJobs(leases) {
  const word = leases.length > 1 ? 'jobs' : 'job';
  return leases.flatMap(({ job_id: id }, i) => [
    i ? ', ' : '', link(`/jobs/${id}`, i ? `${id}` : `${word} ${id}`)]);
}

function makeSlot(slot) {
  const element = make('li', 'slot');
  const name = make('span', 'slot-name',
                    `${slot.device}${slot.device_name ? ` · ${slot.device_name}` : ''}`);
  const room = slot.pack > 1 ? `up to ${slot.pack} jobs` : '';
  const memory = make('span', 'muted',
                      [bytes(slot.memory_bytes), room].filter(Boolean).join(' · '));
  const job = make('span', 'slot-job');
  element.append(make('span', 'figure muted', `slot ${slot.slot}`), name, memory, job);
  return { element, job };
}

class Worker {
  constructor() {
    this.element = make('section', 'card worker');
    const head = make('div', 'title-line');
    this.title = make('h2');
    this.state = make('span', 'chip');
    head.append(this.title, this.state);
    this.facts = make('p', 'muted');
    this.meter = make('div', 'bar-line', undefined, { role: 'img' });
    this.used = make('span', 'state-running');
    this.meter.append(this.used);
    this.gpus = [];
    this.loads = make('ul', 'gpus');
    this.slots = make('ul', 'slots');
    this.element.append(head, this.facts, this.meter, this.loads, this.slots);
  }

  update(row, now) {
    this.row = row;
    setText(this.title, row.name || row.host);
    const state = row.quarantined ? 'quarantined'
      : row.drain ? `draining (${row.drain})` : row.state;
    setText(this.state, state);
    this.state.className = `chip worker-${row.quarantined ? 'quarantined' : row.state}`;
    setText(this.facts, (!row.name || row.name === row.host ? '' : `on ${row.host} · `)
      + `${row.worker_id} · version ${row.version} · ${row.busy_slots} of ${row.slots} slots busy `
      + `(${percent(row.utilisation, 0)})`
      + (row.connected ? '' : ` · last seen ${clock(row.last_seen_at_ms)}`));
    this.used.style.width = `${100 * (row.utilisation ?? 0)}%`;
    this.meter.setAttribute('aria-label', `${row.busy_slots} of ${row.slots} slots busy`);
    while (this.gpus.length > row.loads.length) this.gpus.pop().element.remove();
    while (this.gpus.length < row.loads.length) {
      this.gpus.push(new Gpu());
      this.loads.append(this.gpus[this.gpus.length - 1].element);
    }
    row.loads.forEach((load, i) => this.gpus[i].update(load));
    const described = JSON.stringify(row.devices);
    if (described !== this.described) {
      this.described = described;
      this.lines = (Array.isArray(row.devices) ? row.devices : [])
        .map((slot, i) => [slot.slot ?? i, makeSlot({ ...slot, slot: slot.slot ?? i })]);
      this.slots.replaceChildren(...this.lines.map(([, line]) => line.element));
    }
    this.tick(now);
  }

  // Updates the ages, which grow between events.
  tick(now) {
    const leases = new Map();
    for (const lease of this.row.leases)
      leases.set(lease.slot, [...(leases.get(lease.slot) ?? []), lease]);
    for (const [slot, line] of this.lines ?? []) {
      const held = leases.get(slot) ?? [];
      if (!held.length) {
        setText(line.job, this.row.state === 'online' ? 'free' : '–');
        line.jobs = null;
        continue;
      }
      const jobs = held.map((lease) => lease.job_id).join();
      if (line.jobs !== jobs) {
        line.jobs = jobs;
        line.age = make('span', 'muted');
        line.job.replaceChildren(...linkJobs(held), ' ', line.age);
      }
      const renewed = Math.min(...held.map((lease) => lease.renewed_at_ms));
      setText(line.age,
              `lease${held.length > 1 ? 's' : ''} renewed ${duration((now - renewed) / 1000)} ago`);
    }
  }
}

export async function showWorkers(main) {
  document.title = 'Workers · pelab';
  const about = make(
    'p', 'muted', 'The bar of a worker is the share of its slots that has a job; that of a GPU how '
                  + 'much of the time it was busy, with any program, when the worker last said.'
  );
  const list = make('div'),
        nothing = empty('No worker has ever connected. `pelab-worker --server ADDR` starts one.');
  main.append(make('h1', '', 'Workers'), about, nothing, list);
  const workers = new Map();
  // The coordinator's clock minus the browser's, in ms: the coordinator's times use its own clock.
  let ahead = 0;
  const show = (rows, all) => {
    const now = new Set(rows.map((row) => row.worker_id));
    if (all) for (const [id, worker] of workers)
      if (!now.has(id)) { worker.element.remove(); workers.delete(id); }
    for (const row of rows) {
      if (!workers.has(row.worker_id)) {
        workers.set(row.worker_id, new Worker());
        list.append(workers.get(row.worker_id).element);
      }
      workers.get(row.worker_id).update(row, Date.now() + ahead);
    }
    nothing.hidden = workers.size > 0;
  };
  const answer = await get('/workers');
  ahead = answer.now_ms - Date.now();
  show(answer.workers, true);
  setInterval(() => {
    for (const worker of workers.values()) worker.tick(Date.now() + ahead);
  }, 1000);
  listen('/events', { workers: ({ all, rows }) => show(rows, all) });
}
