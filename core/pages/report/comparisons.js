// Compares each encoding with a baseline encoding, paired by seed, and shows the epochs that each
// took to 50 % accuracy.
import { cellOf, data, paragraph, section, stoppingNote, table } from './page.js';

const { text } = globalThis.pelabCharts;

function pText(p) {
  if (p === null) return '\u2013';
  return p < 0.001 ? p.toExponential(1) : p.toFixed(3);
}

// The settings that tell the groups of a row apart, beyond the encoding.
const settingOf = (row) => Object.entries(row.values)
  .filter(([name]) => !['task', 'protocol'].includes(name))
  .map(([name, value]) => `${name}=${value}`).join(' ');

function pairedTable({ baseline, rows }) {
  const protocols = new Set(rows.map((row) => row.protocol)).size > 1;
  const settings = rows.some((row) => settingOf(row));
  return table({
    columns: [
      { key: 'encoding', label: 'encoding', kind: 'text' },
      { key: 'task', label: 'task', kind: 'text' },
      ...(protocols ? [{ key: 'protocol', label: 'protocol', kind: 'text' }] : []),
      ...(settings ? [{ key: 'setting', label: 'setting', kind: 'text' }] : []),
      { key: 'mean', label: 'its accuracy', kind: 'percent' },
      { key: 'baseline_mean', label: `of ${baseline}`, kind: 'percent' },
      { key: 'difference', label: 'difference, points', kind: 'points' },
      { key: 'interval', label: '95 % interval', kind: 'text' },
      { key: 'p', label: 'p', kind: 'text', title: 'Paired t test, two-sided' },
      { key: 'pairs', label: 'pairs', kind: 'note' },
    ],
    rows: rows.map((row) => ({
      ...row, setting: settingOf(row) || '\u2013',
      interval: row.low === null ? '\u2013' : `${text.points(row.low)} to ${text.points(row.high)}`,
      p: pText(row.p),
      pairs: { text: row.n === row.of ? String(row.n) : `${row.n} of ${row.of}`,
               warning: row.n < row.of },
    })),
  }, { label: `Differences from ${baseline}` });
}

// The epochs that a group's seeds took to an accuracy of 50 %, in words.
function halfText({ median, reached, of }) {
  const never = of - reached;
  if (never === of) return of === 1 ? 'not reached' : `not reached by any of ${of}`;
  return [median === null ? null : String(median),
          never > 0 ? `not reached by ${never} of ${of}` : null]
    .filter((part) => part !== null).join('; ');
}

function speedTable() {
  return table({
    columns: [...data.columns.map((name) => ({ key: name, label: name === 'pe' ? 'encoding' : name,
                                               kind: 'text' })),
      { key: 'half', label: 'epochs to 50 % (median over seeds)', kind: 'text' }],
    rows: data.epochs_to_half.map((entry) => ({ ...cellOf(entry).values, half: halfText(entry) })),
  }, { label: 'Epochs to half of the accuracy' });
}

// Null if there is nothing to compare.
export function comparisonsSection() {
  const { baseline, rows = [], without = [] } = data.comparisons ?? {};
  if (!baseline) return null;
  const made = section('comparisons', `Compared with ${baseline}`,
    `Test accuracy after the last epoch, less that of the same seed with ${baseline} and `
    + 'everything else equal: the mean of these differences, its 95 % interval (Student\u2019s t) '
    + 'and the paired t test. One pair has no interval. p is of each comparison by itself, not '
    + `corrected for their number.${stoppingNote()}`);
  if (rows.length) made.append(pairedTable({ baseline, rows }));
  for (const { encoding, why } of without)
    made.append(paragraph(`${encoding} is not compared: ${why}.`, 'warning'));
  const confounders = new Set(rows.filter((row) => row.confounders.length).map((row) => (
    `${row.encoding} and ${baseline} also differ under ${row.protocol}: `
    + `${row.confounders.join('; ')}.`)));
  for (const other of confounders) made.append(paragraph(other, 'warning'));
  const diverged = new Set(rows.flatMap((row) => [
    row.diverged && `${row.encoding} ${row.task} (${row.protocol}): ${row.diverged} of ${row.of}`,
    row.baseline_diverged
      && `${baseline} ${row.task} (${row.protocol}): ${row.baseline_diverged} of ${row.of}`,
  ].filter(Boolean)));
  if (diverged.size) {
    made.append(paragraph(
      `Diverged (final losses above that of guessing): ${[...diverged].join('; ')}.`, 'warning'));
  }
  if (data.epochs_to_half.length) {
    made.append(paragraph(
      'The epoch, from 0, by which half of the seeds had a test accuracy of 50 % or more; a seed '
      + 'that never had it counts as slower than all others.'), speedTable());
  }
  return made;
}
