// Single heads: heat maps of their drops, violins, the largest drop of each layer, and accuracy by
// the number of RoPE heads.
import { cellOf, data, details, empty, grouped, keyOf, paragraph, place, section,
         sweepName, table } from './page.js';

const { drawHeadCounts, drawHeatMap, drawLayers, drawViolins, make,
        violinsTogether } = globalThis.pelabCharts;

// Why a section is empty.
const noDrops = () => (data.heads.length
  ? empty('No seed stands out from chance by 5 standard errors, so no head can be told from '
          + 'another.')
  : empty('No head ablation is stored for these sweeps. It runs on the kept weights, without '
          + 'training again:', `pelab analyze ${sweepName} --analysis head_ablation`));

// Sorts the ablations of a group: the one that its protocol requests comes first.
function byInterest(a, b) {
  const rank = (map) => {
    const published = cellOf(map).protocol === 'published';
    const { method, hygiene, target } = map.parameters ?? {};
    return (method === 'zero' ? 0 : 4) + (hygiene === (published ? 'authors' : 'clean') ? 0 : 2) +
      (target === (published && cellOf(map).pe === 'mla' ? 'authors' : 'head') ? 0 : 1);
  };
  return rank(a) - rank(b);
}

// One scale for all maps, so that they can be compared.
const limit = Math.max(
  0.05, ...data.heads.flatMap((map) => [...map.mean.flat(), ...map.by_rank.drops.flat()])
    .filter(Number.isFinite).map(Math.abs));

// A head's number is comparable between seeds only if the encoding treats heads differently.
const ranksOf = (map) => map.seeds.length > 1 && !map.heads_differ;

const heatOf = (map, ranks) => (ranks
  ? { values: map.by_rank.drops, n: map.by_rank.n, counts: map.by_rank.significant, of: map.of,
      limit, ranks }
  : { values: map.mean, n: map.n, counts: map.significant, of: map.of, limit });

const seedHeatOf = (map, seed) => ({ values: seed.drops, counts: seed.significant, limit });

const layersOf = (map) => Array.from({ length: map.layers }, (_, layer) => ({
  layer,
  points: map.seeds.flatMap((seed) => seed.drops[layer]
    .map((value, head) => ({ value, head, seed: seed.seed }))
    .filter((point) => point.value !== null)),
}));

// One form and one axis for all violins.
const together = violinsTogether(data.heads.map(layersOf));

function violinsOf(map) {
  return { layers: layersOf(map), key: keyOf(cellOf(map)), label: cellOf(map).short };
}

function warnings(map) {
  const dull = map.seeds.filter((seed) => seed.stands_out === false).length;
  const made = [];
  if (dull > 0) {
    made.push(`In ${dull} of ${map.seeds.length} seeds the accuracy is within 5 standard errors of `
              + 'chance: nothing can drop there, and small drops say nothing.');
  }
  if (map.seeds.length < map.of)
    made.push(`${map.seeds.length} of ${map.of} seeds have this ablation.`);
  return made;
}

function cellBlock(maps) {
  const cell = cellOf(maps[0]);
  const made = make('div', 'cell-block');
  const head = make('div', 'cell-head');
  head.append(make('h3', '', `${cell.short}, ${cell.group}`));
  const notes = make('div', 'cell-notes');
  const show = (map) => {
    const leads = map.seeds.length > 1
      ? [paragraph(`${map.lead_texts.join('; ')}.`, 'muted small')] : [];
    notes.replaceChildren(...warnings(map).map((text) => paragraph(text, 'warning')), ...leads);
    order.value = ranks ? 'rank' : 'head';
    orderLabel.hidden = map.seeds.length < 2;
    heat?.update(heatOf(map, ranks));
    violins?.update(violinsOf(map));
    bySeed.hidden = map.seeds.length < 2;
    if (bySeed.open) showSeeds();
  };
  const showSeeds = () => {
    seedCharts.splice(0).forEach((one) => one.destroy?.());
    seedPlaces.replaceChildren(
      ...chosen.seeds.map((seed) => place('heat map', `${name} seed ${seed.seed}`, (element) => {
        const drawn = drawHeatMap(element, seedHeatOf(chosen, seed), {
          title: `Seed ${seed.seed}`, name: `heads ${name} seed ${seed.seed}`,
          description: 'drop in points', height: heightOf(chosen)
        });
        seedCharts.push(drawn);
        return drawn;
      })));
  };
  const heightOf = (map) => Math.min(420, Math.max(220, 90 + 35 * map.layers));
  const name = `${cell.short} ${cell.group}`;
  const seedCharts = [];
  const seedPlaces = make('div', 'grid');
  const bySeed = make('details', 'seeds');
  bySeed.append(make('summary', '', 'Each seed, by head'), seedPlaces);
  bySeed.addEventListener('toggle', () => {
    if (bySeed.open && !seedPlaces.childElementCount) showSeeds();
  });
  let heat = null, violins = null, chosen = maps[0], ranks = ranksOf(maps[0]);
  const orderLabel = make('label', 'choice-label', 'seeds put together by ');
  const order = make('select');
  order.append(make('option', '', 'rank within each seed', { value: 'rank' }),
               make('option', '', 'number of the head', { value: 'head' }));
  order.addEventListener('change', () => { ranks = order.value === 'rank'; show(chosen); });
  orderLabel.append(order);
  if (maps.length > 1) {
    const label = make('label', 'choice-label', 'ablation ');
    const select = make('select');
    maps.forEach((map, i) => select.append(make('option', '', map.variant, { value: i })));
    select.addEventListener('change', () => {
      chosen = maps[Number(select.value)];
      ranks = ranksOf(chosen);
      show(chosen);
    });
    label.append(select);
    head.append(label);
  } else {
    head.append(make('span', 'muted', maps[0].variant));
  }
  head.append(orderLabel);
  const grid = make('div', 'grid');
  grid.append(
    place('heat map', name, (element) => (heat = drawHeatMap(element, heatOf(chosen, ranks), {
      title: 'Each head', name: `heads ${name}`, description: 'mean drop over seeds, in points',
      height: heightOf(chosen)
    }))),
    place('violins', name, (element) => (violins = drawViolins(element, violinsOf(chosen), {
      title: 'Each layer', name: `layers ${name}`, description: 'every head of every seed',
      height: heightOf(chosen), together
    }))));
  made.append(head, notes, grid, bySeed);
  show(chosen);
  return made;
}

export function headsSection() {
  const made = section(
    'heads', 'What each head is worth',
    'Accuracy lost without each head, in points: negative where the model does better without it. '
    + 'Means are of the drops as stored. A figure stands in a map where the drop is more than 3 '
    + 'paired standard errors from 0 in at least one seed, elsewhere it may be chance; the scale '
    + 'is the same in all maps; \u00d7 is an entry that does not exist. Where the encoding treats '
    + 'heads alike, a head\u2019s number says nothing from one seed to the next: seeds are put '
    + 'together by rank, 1 being each seed\u2019s largest drop in the layer, which is above 0 also '
    + 'by chance.');
  if (!data.heads.length) {
    made.append(noDrops());
    return made;
  }
  const groups = grouped(data.heads, (map) => cellOf(map).group);
  for (const [group, maps] of groups) {
    const blocks = grouped(maps, (map) => map.cell)
      .map(([, ofCell]) => cellBlock([...ofCell].sort(byInterest)));
    made.append(...(groups.length > 1 ? [details(`${group}: ${blocks.length} cells`, blocks,
                                                 group === groups[0][0])] : blocks));
  }
  const without = data.cells.filter((_, index) => !data.heads.some((map) => map.cell === index))
    .map((cell) => cell.label);
  if (without.length)
    made.append(paragraph(`No head ablation is stored of: ${without.join('; ')}.`, 'warning'));
  return made;
}

// One axis for all charts, in steps of 5 points.
function layersRange() {
  const ends = data.layers.flatMap((entry) => entry.points.flatMap(
    (point) => [point.low ?? point.mean, point.mean, point.high ?? point.mean]
  ));
  const low = Math.max(-1, Math.min(0, ...ends)), high = Math.min(1, Math.max(0.05, ...ends));
  return [Math.floor(low * 20) / 20, Math.ceil((high + 0.01) * 20) / 20];
}

export function layersSection() {
  const made = section(
    'layers', 'Layer by layer',
    'The largest drop of a head in each layer, as a mean over seeds with its 95 % interval; drops '
    + 'within 3 paired standard errors are taken for 0, and seeds that do not stand out from '
    + 'chance are left out. The axis is the same in all charts.');
  if (!data.layers.length) {
    made.append(noDrops());
    return made;
  }
  const range = layersRange();
  for (const [group, series] of grouped(data.layers, (entry) => cellOf(entry).group)) {
    const grid = make('div', 'grid');
    for (const [variant, entries] of grouped(series, (entry) => entry.variant)) {
      const content = { series: entries.map((entry) => ({ label: cellOf(entry).short, key: keyOf(
        cellOf(entry)
      ), points: entry.points, cell: entry.cell })) };
      grid.append(place('layers', `${group}: ${variant}`, (element) => drawLayers(
        element, content,
        { title: group, description: variant, name: `by layer ${group} ${variant}`, range }
      )));
    }
    made.append(grid);
  }
  return made;
}

// Protocols share a chart here, so they differ in dash and marker like other variants.
const variants = [...new Set(data.head_counts.flatMap((chart) => [...chart.levels, ...chart.series])
                               .map((one) => one.variant))];
const lookKey = (one) => `${one.encoding}\u0000${one.variant}`;

export const headCountLooks =
  data.head_counts.flatMap((chart) => [...chart.levels, ...chart.series]).map((one) => (
    { key: lookKey(one), encoding: one.encoding, variant: variants.indexOf(one.variant) }));

const withLooks = (chart) => ({
  levels: chart.levels.map((level) => ({ ...level, key: lookKey(level) })),
  series: chart.series.map((series) => ({ ...series, key: lookKey(series) })),
});

// Null if no group rotates only some of its heads.
export function headCountsSection() {
  if (!data.head_counts.length) return null;
  const made = section(
    'head-counts', 'How many heads need RoPE',
    'Test accuracy with RoPE in the first k heads and none in the others; means over seeds ' +
    'with 95 % intervals.');
  const grid = make('div', 'grid');
  for (const chart of data.head_counts) {
    grid.append(place('head counts', chart.task, (element) => drawHeadCounts(
      element, withLooks(chart), { title: chart.task, name: `heads with rope ${chart.task}` }
    )));
  }
  made.append(grid);
  return made;
}

export function depositsSection() {
  const made = section(
    'deposits', 'Deposit indices',
    'Whether one head of a layer holds its work. Largest drop in points; top share: its part of '
    + 'all drops that count; Gini: 0 alike, near 1 one head; effective heads: 1 / the sum of '
    + 'squared shares; a deposit is a drop of at least 40 points, or half of what is above chance, '
    + 'that is 3 times the next in its layer.');
  const rows = data.deposits.filter((row) => row.variant !== null);
  if (!rows.length) {
    made.append(noDrops());
    return made;
  }
  const mean = (summary, factor = 1) => (summary.mean === null ? null : {
    mean: summary.mean * factor,
    half_width: summary.half_width === null ? null : summary.half_width * factor, n: summary.n
  });
  const columns = [
    ...data.columns.map((name) => ({ key: name, label: name, kind: 'text' })),
    { key: 'variant', label: 'ablation', kind: 'text' },
    { key: 'max_drop', label: 'largest drop', kind: 'points_interval' },
    { key: 'top_share', label: 'top share', kind: 'mean' },
    { key: 'gini', label: 'Gini', kind: 'mean' },
    { key: 'effective_heads', label: 'eff. heads', kind: 'mean' },
    { key: 'deposit', label: 'seeds with a deposit', kind: 'text' },
    { key: 'top', label: 'largest in', kind: 'text' },
    { key: 'seeds', label: 'seeds', kind: 'note' }];
  made.append(table({
    columns,
    rows: rows.map((row) => ({
      ...cellOf(row).values, variant: row.variant, max_drop: mean(row.max_drop),
      top_share: mean(row.top_share), gini: mean(row.gini),
      effective_heads: mean(row.effective_heads),
      deposit: row.judged ? `${row.deposit_seeds} of ${row.judged}` : '\u2013',
      top: row.top_layer === null ? '\u2013'
        : `layer ${row.top_layer}${row.placed > 1 ? ` (${row.top_seeds} of ${row.placed})` : ''}`,
      seeds: { text: [`${row.n} of ${cellOf(row).test.of}`,
                      ...(row.undefined ? [`${row.undefined} mean nothing`] : [])].join(', '),
               warning: !row.complete || row.undefined > 0 },
    })),
  }, { label: 'Deposit indices' }));
  made.append(paragraph(
    '\u00b1: the 95 % interval of the mean over seeds. An index means nothing, and is left out, '
    + 'where the accuracy is within 5 standard errors of chance or no drop counts.'
  ));
  return made;
}
