// The origin of the numbers, and how to reproduce them.
import { cellOf, data, details, paragraph, section, table } from './page.js';

const { make } = globalThis.pelabCharts;

function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 1);
  } catch {
    return json;
  }
}

export const time = (ms) => `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

export function provenanceSection() {
  const made = section('provenance', 'Where this comes from');
  const { commands, environments, jobs, specs } = data.provenance;
  made.append(
    paragraph('The same jobs have the same keys anywhere: what is stored is not trained again.')
  );
  made.append(make('h3', 'group', 'Made again with'), make('pre', 'block', commands.join('\n')));
  made.append(make('h3', 'group', 'Computed by'));
  if (environments.length) {
    made.append(table({
      columns: [
        { key: 'jobs', label: 'jobs', kind: 'count' },
        { key: 'device', label: 'device', kind: 'text' },
        { key: 'device_name', label: 'which', kind: 'text' },
        { key: 'threads', label: 'threads', kind: 'count' },
        { key: 'micro_batch', label: 'micro-batch', kind: 'count',
          title: 'Examples that went through the model at once; 0: the whole batch' },
        { key: 'libtorch', label: 'LibTorch', kind: 'text' },
        { key: 'trainer', label: 'trainer', kind: 'text' },
      ],
      rows: environments,
    }, { label: 'Devices and versions' }));
  } else {
    made.append(paragraph('No trainer has started yet.'));
  }
  made.append(make('h3', 'group', 'Sweeps'));
  for (const sweep of data.sweeps) {
    const about = `${sweep.name} (number ${sweep.sweep_id}, ${sweep.state}, submitted `
                  + `${time(sweep.created_at_ms ?? sweep.created_at)})`;
    made.append(details(about, make('pre', 'block', sweep.document ?? '')));
  }
  const specBlocks = data.cells.map(
    (cell, index) => details(cell.label, make('pre', 'block', pretty(specs[index])))
  );
  made.append(details(
    `Specs: one of each cell (${specBlocks.length}); its other jobs differ in the seed`, specBlocks
  ));
  const keys = () => table({
    columns: [
      { key: 'job_id', label: 'job', kind: 'count' },
      { key: 'cell', label: 'cell', kind: 'text' },
      { key: 'seed', label: 'seed', kind: 'count' },
      { key: 'state', label: 'state', kind: 'text' },
      { key: 'device', label: 'device', kind: 'text' },
      { key: 'correct', label: 'test examples right', kind: 'text' },
      { key: 'key', label: 'key', kind: 'code' }],
    rows: jobs.map((job) => ({
      ...job, cell: cellOf(job).label,
      correct: job.test_total === null ? '\u2013' : `${job.test_correct} of ${job.test_total}`,
    })),
  }, { label: 'Jobs and their keys' });
  const fold = details(`Jobs and their keys (${jobs.length})`, []);
  fold.addEventListener('toggle', () => {
    if (fold.open && fold.children.length === 1) fold.append(keys());
  });
  made.append(fold);
  return made;
}

export function methodsSection() {
  const made = section('methods', 'How to read this');
  const list = make('ul', 'rules');
  for (const line of [
    ...data.provenance.notes.map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`),
    'A cell is what differs in nothing but the seed. Its figures are means over seeds: one trained '
    + 'model is one observation, never one test example.',
    'Intervals hold the mean with 95 % confidence: mean \u00b1 t(97.5 %, n \u2212 1) \u00b7 sd / '
    + '\u221an, with sd over n \u2212 1. They need two seeds.',
    'Accuracies are of the last epoch; training accuracy is the running mean over the epoch in '
    + 'training mode. The gap is the accuracy on a sample of the training examples, without '
    + 'dropout, less the test accuracy. Layers, heads and epochs count from 0.',
    'A head\u2019s drop is paired: the same examples, with the head and without. It counts where '
    + 'it exceeds 3 standard errors of that pairing.',
    'Nothing is thinned out: every epoch of every curve and every head of every matrix is in this '
    + 'file, as stored.',
  ]) list.append(make('li', '', line));
  made.append(list, details(
    'Licences', make('pre', 'block', document.getElementById('licences').textContent.trim())
  ));
  return made;
}
