// The tables of results, and of missing jobs.
import { cellOf, data, empty, paragraph, section, stoppingNote, table } from './page.js';

const { make, text } = globalThis.pelabCharts;

function seedsNote(cell) {
  const { n, of, missing, failed, cancelled } = cell.test;
  const parts = [`${n} of ${of}`];
  if (missing) parts.push(`${missing} missing`);
  if (failed) parts.push(`${failed} failed`);
  if (cancelled) parts.push(`${cancelled} cancelled`);
  if (cell.diverged) parts.push(`${cell.diverged} diverged`);
  return { text: parts.join(', '), warning: n < of || cell.diverged > 0 };
}

export function resultsSection() {
  const made = section(
    'results', 'Results',
    'Accuracy after the last epoch, as a mean over seeds with its 95 % interval (Student\u2019s t '
    + `over the seeds that are done; one seed has no interval).${stoppingNote()}`);
  if (!data.cells.length) {
    made.append(empty('The sweep has no jobs yet.', 'pelab status'));
    return made;
  }
  const columns = [
    ...data.columns.map((name) => ({ key: name, label: name === 'pe' ? 'encoding' : name,
                                     kind: 'text' })),
    { key: 'seeds', label: 'seeds', kind: 'note' },  // what a mean rests on is never off the screen
    { key: 'test', label: 'test accuracy', kind: 'interval' },
    { key: 'shortcut', label: 'shortcut', kind: 'percent',
      title: 'The accuracy of the best rule that does not do the task' },
    { key: 'ceiling', label: 'ceiling', kind: 'percent',
      title: 'The accuracy of the best rule that does the task: some examples may be ambiguous' },
    { key: 'best', label: 'best epoch', kind: 'interval',
      title: 'The best test accuracy of any epoch' },
    { key: 'train', label: 'training accuracy', kind: 'interval' },
    { key: 'fit', label: 'without dropout', kind: 'interval',
      title: 'Accuracy on a sample of the training examples, evaluated like the test' },
    { key: 'gap', label: 'gap', kind: 'points_interval',
      title: 'Accuracy on training examples without dropout less test accuracy, in points' },
    { key: 'wall', label: 'seconds', kind: 'mean', title: 'Of a job, wall time' }];
  made.append(table({ columns, rows: data.cells.map(
    (cell) => ({ ...cell.values, test: cell.test, shortcut: cell.shortcut?.accuracy,
                 ceiling: cell.shortcut?.ceiling,
                 best: cell.best, train: cell.train, fit: cell.fit,
                 gap: cell.gap, wall: cell.wall,
                 seeds: seedsNote(cell) })
  ) },
    { label: 'Results' }));
  if (data.cells.some((cell) => cell.diverged))
    made.append(paragraph('diverged: succeeded with final losses, in training and in the test, '
                          + 'above that of guessing.', 'warning'));
  if (data.cells.some((cell) => !cell.complete))
    made.append(paragraph('* not every seed of this group has a result.', 'warning'));
  return made;
}

// Null if no job has the analysis.
export function splitsSection() {
  const rows = data.splits ?? [];
  if (!rows.length) return null;
  const made = section(
    'splits', 'Accuracy on every split',
    'Of the models after the last epoch, without dropout: on the training examples, on the test '
    + 'set and on every other split of the data, as a mean over seeds with its 95 % interval.');
  made.append(table({
    columns: [
      ...data.columns.map((name) => ({ key: name, label: name === 'pe' ? 'encoding' : name,
                                       kind: 'text' })),
      { key: 'split', label: 'split', kind: 'text' },
      { key: 'accuracy', label: 'accuracy', kind: 'interval' },
      { key: 'chance', label: 'chance', kind: 'percent',
        title: 'The accuracy of guessing on this split' },
      { key: 'seeds', label: 'seeds', kind: 'note' }],
    rows: rows.map((row) => ({
      ...cellOf(row).values, ...row,
      seeds: { text: `${row.accuracy.n} of ${row.accuracy.of}`,
               warning: row.accuracy.n < row.accuracy.of },
    })),
  }, { label: 'Accuracy on every split' }));
  return made;
}

export function lackingSection() {
  const made = section('lacking', 'Missing and failed',
                       'Jobs without a result. Means above are over the seeds that are done, and '
                       + 'say how many these are.');
  if (!data.lacking.length) {
    made.append(paragraph(
      `Nothing is missing: all ${data.cells.reduce((sum, cell) => sum + cell.jobs.length, 0)} jobs `
      + 'have their results.', ''
    ));
    return made;
  }
  made.append(table({
    columns: [
      { key: 'cell', label: 'cell', kind: 'text' },
      { key: 'seed', label: 'seed', kind: 'count' },
      { key: 'job_id', label: 'job', kind: 'count' },
      { key: 'state', label: 'state', kind: 'text' },
      { key: 'epochs', label: 'epochs', kind: 'text' },
      { key: 'attempts', label: 'attempts', kind: 'count' },
      { key: 'error', label: 'why', kind: 'text' }],
    rows: data.lacking.map((job) => ({ ...job, cell: cellOf(job).label,
                                       epochs: `${job.epochs_done} of ${job.epochs}`,
                                       error: job.error ?? '' })),
  }, { label: 'Missing and failed jobs' }));
  const failed = data.lacking.some((job) => job.state === 'failed');
  const retries = data.sweeps.map((sweep) => `pelab retry ${text.visible(sweep.name)}`);
  if (failed) made.append(make('code', 'block', retries.join('\n')));
  return made;
}
