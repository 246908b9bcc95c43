// The workers: their slots and devices, and how long ago each lease was renewed.
import { empty, link, make, setText } from './dom.js';
import { bytes, clock, duration } from './format.js';
import { get, listen } from './live.js';
import { percent } from '../charts/text.js';

function makeSlot(slot) {
  const element = make('li', 'slot');
  const name = make('span', 'slot-name', `${slot.device}${slot.device_name ? ` · ${slot.device_name}` : ''}`);
  const memory = make('span', 'muted', bytes(slot.memory_bytes));
  const job = make('span', 'slot-job');
  element.append(make('span', 'figure muted', `slot ${slot.slot}`), name, memory, job);
  return { element, job };
}

class Worker {
  constructor(row) {
    this.element = make('section', 'card worker');
    const head = make('div', 'title-line');
    this.title = make('h2', '', row.host);
    this.state = make('span', 'chip');
    head.append(this.title, this.state);
    this.facts = make('p', 'muted');
    this.meter = make('div', 'bar-line', undefined, { role: 'img' });
    this.used = make('span', 'state-running');
    this.meter.append(this.used);
    this.slots = make('ul', 'slots');
    this.element.append(head, this.facts, this.meter, this.slots);
  }

  update(row, now) {
    this.row = row;
    const state = row.quarantined ? 'quarantined' : row.drain ? `draining (${row.drain})` : row.state;
    setText(this.state, state);
    this.state.className = `chip worker-${row.quarantined ? 'quarantined' : row.state}`;
    setText(this.facts, `${row.worker_id} · version ${row.version} · ${row.busy_slots} of ${row.slots} slots busy (${percent(row.utilisation, 0)})${row.connected ? '' : ` · last seen ${clock(row.last_seen_at_ms)}`}`);
    this.used.style.width = `${100 * (row.utilisation ?? 0)}%`;
    this.meter.setAttribute('aria-label', `${row.busy_slots} of ${row.slots} slots busy`);
    const described = JSON.stringify(row.devices);
    if (described !== this.described) {
      this.described = described;
      this.lines = (Array.isArray(row.devices) ? row.devices : []).map((slot, i) => [slot.slot ?? i, makeSlot({ ...slot, slot: slot.slot ?? i })]);
      this.slots.replaceChildren(...this.lines.map(([, line]) => line.element));
    }
    this.tick(now);
  }

  // Ages go on between events.
  tick(now) {
    const leases = new Map(this.row.leases.map((lease) => [lease.slot, lease]));
    for (const [slot, line] of this.lines ?? []) {
      const lease = leases.get(slot);
      if (!lease) { setText(line.job, 'free'); line.link = null; continue; }
      if (line.jobId !== lease.job_id || !line.link) {
        line.jobId = lease.job_id;
        line.link = link(`/jobs/${lease.job_id}`, `job ${lease.job_id}`);
        line.age = make('span', 'muted');
        line.job.replaceChildren(line.link, ' ', line.age);
      }
      setText(line.age, `lease renewed ${duration((now - lease.renewed_at_ms) / 1000)} ago`);
    }
  }
}

export async function showWorkers(main) {
  document.title = 'Workers · pelab';
  const about = make('p', 'muted', 'Utilisation is that of slots: what share of them has a job. Workers do not report the load of a GPU itself.');
  const list = make('div'), nothing = empty('No worker has ever connected. `pelab-worker --server ADDR` starts one.');
  main.append(make('h1', '', 'Workers'), about, nothing, list);
  const workers = new Map();
  // The coordinator's clock, by which its times are.
  let ahead = 0;
  const show = (rows, all) => {
    const now = new Set(rows.map((row) => row.worker_id));
    if (all) for (const [id, worker] of workers) if (!now.has(id)) { worker.element.remove(); workers.delete(id); }
    for (const row of rows) {
      if (!workers.has(row.worker_id)) {
        workers.set(row.worker_id, new Worker(row));
        list.append(workers.get(row.worker_id).element);
      }
      workers.get(row.worker_id).update(row, Date.now() + ahead);
    }
    nothing.hidden = workers.size > 0;
  };
  const answer = await get('/workers');
  ahead = answer.now_ms - Date.now();
  show(answer.workers, true);
  setInterval(() => { for (const worker of workers.values()) worker.tick(Date.now() + ahead); }, 1000);
  listen('/events', { workers: ({ all, rows }) => show(rows, all) });
}
