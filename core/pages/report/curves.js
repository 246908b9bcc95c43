// Learning curves: test and training accuracy, a pair of charts for each task and protocol.
import { cellOf, data, empty, grouped, keyOf, paragraph, place, section } from './page.js';

const { drawCurves, make } = globalThis.pelabCharts;

function seriesOf(entry, metric) {
  const cell = cellOf(entry);
  return {
    label: cell.short, key: keyOf(cell),
    epochs: Array.from({ length: entry.epochs }, (_, epoch) => epoch), ...entry[metric],
    n: entry.n, of: entry.of, complete: cell.complete, cell: entry.cell,
    seeds: entry.seeds.map((seed) => ({ seed: seed.seed, job_id: seed.job_id,
                                        values: seed[metric] })),
  };
}

export function curvesSection() {
  const made = section(
    'curves', 'Convergence',
    'Accuracy after each epoch: the mean over seeds, in the band of its 95 % interval '
    + '(Student\u2019s t). Drag over a chart to zoom, or focus it and press + and \u2212, the '
    + 'arrows, and 0.');
  const { series, with_seeds: withSeeds, seed_points: points } = data.curves;
  if (!series.length) {
    made.append(empty('No job has finished an epoch yet. Jobs run once a worker is there.',
                      'pelab status'));
    return made;
  }
  for (const [group, entries] of grouped(series, (entry) => cellOf(entry).group)) {
    made.append(make('h3', 'group', group));
    const grid = make('div', 'grid');
    // Many variants of one encoding would cover all others; they have their own chart further down.
    const partial = entries.filter((entry) => cellOf(entry).pe === 'partial_rope')
      .map((entry) => keyOf(cellOf(entry)));
    const hidden = entries.length > 10 && partial.length < entries.length ? partial : [];
    const isHidden = (entry) => hidden.includes(keyOf(cellOf(entry)));
    const order = [...entries].sort((a, b) => isHidden(a) - isHidden(b));
    for (const [metric, title] of [['test', 'Test accuracy'], ['train', 'Training accuracy']]) {
      const drawn = order.map((entry) => seriesOf(entry, metric));
      grid.append(place('curves', `${metric}: ${group}`, (element) => drawCurves(
        element, { series: drawn },
        { title, name: `${metric} accuracy ${group}`, yLabel: title.toLowerCase(), height: 360,
          hidden })));
    }
    made.append(grid);
    if (hidden.length)
      made.append(paragraph(`${hidden.length} variants of partial_rope are hidden at first: `
                            + 'press a name to show it.'));
    const begun = entries.filter((entry) => entry.basis === 'begun')
      .map((entry) => cellOf(entry).short);
    if (begun.length)
      made.append(paragraph(`No seed is done yet of ${begun.join(', ')}: the mean is over those `
                            + 'that have begun, as far as all of them have come.', 'warning'));
  }
  made.append(paragraph(
    'A mean is over the seeds that are done; failed and unfinished seeds are not in it'
    + (withSeeds ? ', but among the single seeds (\u201cSeeds\u201d), which are drawn with every '
                   + 'stored digit.' : '.')
    + ' An interval of few seeds may reach beyond 0 and 100 %: the charts end there.'));
  if (!withSeeds) {
    made.append(paragraph(
      `The curves of single seeds are left out: they have ${points.toLocaleString('en')} `
      + 'points. pelab report \u2026 --all-seeds puts them in.', 'warning'));
  }
  return made;
}
