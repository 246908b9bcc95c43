// The page of a job: its progress, its curve as it grows, its log, its attempts, its head
// ablations.
import { card, empty, link, make, select, setText, textTable, throttled } from './dom.js';
import { liveChart } from './charts.js';
import { jobControls, mayWrite } from './control.js';
import { STATES, clock, duration } from './format.js';
import { get, listen } from './live.js';
import { LogView } from './log_view.js';
import { percent, number } from '../charts/text.js';

const ENDED = new Set(['succeeded', 'failed', 'cancelled']);

function facts(main) {
  const list = make('dl', 'facts-grid');
  const names = ['Epochs', 'Test accuracy', 'Best', 'Training accuracy', 'Without dropout',
                 'Device', 'Wall time', 'Attempts', 'Key'];
  const values = new Map(names.map((name) => {
    const value = make('dd', 'figure');
    const pair = make('div');
    pair.append(make('dt', '', name), value);
    list.append(pair);
    return [name, value];
  }));
  const bar = make('div', 'bar-line'), done = make('span');
  bar.append(done);
  const error = make('p', 'notice bad'), warning = make('p', 'notice');
  const diverged = make(
    'p', 'notice bad',
    'Diverged: the final losses in training and in the test are above that of guessing.');
  main.append(card(null, bar, list, error, warning, diverged));
  return (job) => {
    done.style.width = `${job.epochs ? (100 * job.epochs_done) / job.epochs : 100}%`;
    done.className = `state-${job.state}`;
    const set = (name, text) => setText(values.get(name), text);
    set('Epochs', `${job.epochs_done} of ${job.epochs}`);
    diverged.hidden = !job.diverged;
    set('Test accuracy', percent(job.test_accuracy, 2));
    set('Best', percent(job.best_test_accuracy, 2));
    set('Training accuracy', percent(job.train_accuracy, 2));
    set('Without dropout', percent(job.train_eval_accuracy, 2));
    set('Device', job.device ?? '–');
    set('Wall time', job.wall_seconds === null ? '–' : duration(job.wall_seconds));
    set('Attempts', job.attempts);
    set('Key', job.key.slice(0, 12));
    values.get('Key').title = job.key;
    setText(error, job.error ?? '');
    error.hidden = !job.error;
    error.className = job.state === 'failed' ? 'notice bad' : 'notice';
    setText(warning, job.warning ?? '');
    warning.hidden = !job.warning;
    diverged.hidden = !job.diverged;
  };
}

// The two lines use the colors of the first two encodings, which differ strongly.
function line(label, key, rows, column) {
  return { label, key, epochs: rows.map((row) => row.epoch), mean: rows.map((row) => row[column]),
           low: null, high: null, n: 1, of: 1, complete: true };
}

// Charts of accuracies and losses, from epochs indexed by number.
function curves(main) {
  const accuracy = make('div'), loss = make('div'), nothing = empty('No epoch is stored yet.');
  const both = make('div', 'maps');
  both.append(accuracy, loss);
  main.append(card('Curve', nothing, both));
  const charts = [
    liveChart(accuracy, 'drawCurves',
              { title: 'Accuracy by epoch', name: 'accuracy', height: 300 }),
    liveChart(loss, 'drawCurves',
              { title: 'Loss by epoch', name: 'loss', height: 300, percent: false }),
  ];
  return (rows) => {
    nothing.hidden = rows.length > 0;
    both.hidden = rows.length === 0;
    if (!rows.length) return;
    const accuracies = [line('test', 'rope', rows, 'test_accuracy'),
                        line('training', 'nope', rows, 'train_accuracy')];
    if (rows.some((row) => Number.isFinite(row.train_eval_accuracy))) {
      accuracies.push(line('training, without dropout', 'mla', rows, 'train_eval_accuracy'));
    }
    charts[0].update({ series: accuracies });
    charts[1].update({ series: [line('test', 'rope', rows, 'test_loss'),
                                line('training', 'nope', rows, 'train_loss')] });
  };
}

function attemptsTable(main) {
  const columns = ['No.', 'Worker', 'Device', 'From epoch', 'Outcome', 'Started', 'Took', 'Error'];
  const { table, fill } = textTable(columns,
                                    columns.map((name) => (name === 'Error' ? 'long' : '')));
  const scroll = make('div', 'table-scroll', undefined,
                      { tabindex: '0', role: 'region', 'aria-label': 'Attempts' });
  scroll.append(table);
  const nothing = empty('It was not tried yet.');
  main.append(card('Attempts', nothing, scroll));
  return (rows) => {
    nothing.hidden = rows.length > 0;
    scroll.hidden = rows.length === 0;
    fill(rows.map((row) => {
      const took = row.ended_at_ms === null ? 'runs'
        : duration((row.ended_at_ms - row.started_at_ms) / 1000);
      return [row.number, row.worker_name ?? row.worker, row.device, row.start_epoch ?? '–',
              row.outcome ?? 'open', clock(row.started_at_ms), took, row.error ?? ''];
    }));
  };
}

class Ablations {
  constructor(main, id) {
    this.id = id;
    this.place = make('div');
    this.tools = make('div', 'tools');
    this.layers = make('div', 'table-scroll');
    this.card = card('Head ablation', this.tools, this.place, this.layers);
    this.card.hidden = true;
    main.append(this.card);
  }

  async load() {
    const [{ ablations }, { deposits }] = await Promise.all([get(`/jobs/${this.id}/ablations`),
                                                             get(`/jobs/${this.id}/deposits`)]);
    this.matrices = new Map();
    for (const row of ablations) {
      const known = this.matrices.get(row.analysis_id)
        ?? { row, values: [], counts: [], id: row.analysis_id };
      (known.values[row.layer] ??= [])[row.head] = row.accuracy_drop;
      const mayBeChance = row.drop_standard_error !== null
        && Math.abs(row.accuracy_drop) <= 3 * row.drop_standard_error;
      (known.counts[row.layer] ??= [])[row.head] = mayBeChance ? 0 : 1;
      this.matrices.set(row.analysis_id, known);
    }
    this.deposits = deposits;
    this.card.hidden = this.matrices.size === 0;
    if (!this.matrices.size) return;
    if (!this.matrices.has(this.chosen)) this.chosen = this.matrices.keys().next().value;
    const text = ({ row }) =>
      `${row.method}, ${row.hygiene} hygiene, ${row.split} data, target ${row.target}`;
    this.tools.replaceChildren(...(this.matrices.size > 1
      ? [select('Analysis',
                [...this.matrices].map(([id, one]) => ({ value: String(id), text: text(one) })),
                String(this.chosen), (id) => { this.chosen = Number(id); this.show(); })] : []));
    this.show();
  }

  show() {
    const { values, counts, row, id } = this.matrices.get(this.chosen);
    const heads = Math.max(...values.map((one) => one?.length ?? 0));
    const whole = (one) => Array.from({ length: heads }, (_, head) => one?.[head] ?? null);
    const data = { values: values.map(whole), counts };
    this.chart ??= liveChart(this.place, 'drawHeatMap', {
      title: 'Drop of accuracy without each head',
      description: `${row.method} ablation, ${row.hygiene} hygiene, ${row.split} data; red: worse `
                   + 'without it; no figure: it may be chance',
      name: `ablation-job-${this.id}`,
    });
    this.chart.update(data);
    const rows = this.deposits.filter((one) => one.analysis_id === id);
    const columns = ['Layer', 'Largest drop', 'Head', 'Gini', 'Effective heads', 'Deposit'];
    const { table, fill } = textTable(columns, columns.map(() => 'figure'));
    fill(rows.map((one) => {
      const deposit = one.layer === null
        ? (one.deposits === null ? '–' : `${one.deposits} layers`)
        : one.deposit === null ? '–' : one.deposit ? 'yes' : 'no';
      return [one.layer ?? 'all', percent(one.max_drop), one.top_head ?? '–', number(one.gini),
              number(one.effective_heads), deposit];
    }));
    this.layers.replaceChildren(...(rows.length ? [table] : []));
  }
}

export async function showJob(main, id) {
  const path = encodeURIComponent(id);
  const asked = new URLSearchParams(location.search).get('sweep');
  const { job, attempts, sweep, varying } =
    await get(`/jobs/${path}${asked ? `?sweep=${encodeURIComponent(asked)}` : ''}`);
  if (sweep) {
    const back = make('p', 'back');
    back.append(link(`/sweeps/${sweep.sweep_id}`, `‹ ${sweep.name}`));
    main.append(back);
  }
  // The settings in which the job differs from the sweep's other jobs, beyond encoding, task and
  // seed.
  const differs = Object.entries(varying).map(([name, value]) => ` · ${name} ${value}`).join('');
  const title = make('h1'), state = make('span', 'chip'), line_ = make('div', 'title-line'),
        about = make('p', 'muted');
  line_.append(title, state);
  const controls = mayWrite() ? jobControls() : null;
  main.append(line_, about, ...(controls ? [controls.element, controls.said] : []));
  const showFacts = facts(main);
  const showCurves = curves(main);
  const log = new LogView(job.job_id);
  main.append(card('Log', log.element));
  const showAttempts = attemptsTable(main);
  const ablations = new Ablations(main, job.job_id);
  const spec = make('details', 'card'),
        pre = make('pre', 'spec', JSON.stringify(job.spec, null, 2));
  spec.append(make('summary', '', 'Specification'), pre);
  main.append(spec);
  const show = (row) => {
    document.title = `${row.pe_label} ${row.task}${differs} seed ${row.seed} · pelab`;
    setText(title, `${row.pe_label} · ${row.task}${differs} · seed ${row.seed}`);
    const text = row.trained && row.state === 'running'
      ? 'adding analyses' : STATES[row.state]?.text ?? row.state;
    setText(state, `${STATES[row.state]?.glyph ?? ''} ${text}${row.diverged ? ', diverged' : ''}`);
    state.className = `chip state-${row.state}`;
    setText(about, `job ${row.job_id} · ${row.protocol} `
                   + `protocol${row.generation > 1 ? ` · generation ${row.generation}` : ''}`);
    showFacts(row);
    controls?.update(row);
  };
  show(job);
  showAttempts(attempts);
  let known = job, tries = attempts;
  const epochs = [];
  const drawCurves = throttled(500, () => showCurves(epochs));
  listen(`/jobs/${job.job_id}/events`, {
    job: ({ rows }) => {
      for (const row of rows) {
        if (ENDED.has(row.state) && row.state !== known.state) ablations.load();
        known = row;
        show(row);
      }
    },
    epochs: ({ all, rows }) => {
      if (all) epochs.length = 0;
      for (const row of rows) epochs[row.epoch] = row;
      drawCurves();
    },
    attempts: ({ all, rows }) => {
      if (all) tries = rows;
      else for (const row of rows)
        tries = [...tries.filter((one) => one.number !== row.number), row];
      showAttempts(tries.sort((a, b) => a.number - b.number));
    },
    log: ({ rows }) => { for (const row of rows) log.follow(row.attempt); },
  });
  await ablations.load();
}
