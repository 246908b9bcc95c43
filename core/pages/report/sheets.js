// The claim sheets that were settled on the report's sweeps: verdicts, evidence over seeds, and the
// values of every seed.
import { data, details, grouped, paragraph, place, section, table } from './page.js';
import { time } from './provenance.js';

const { drawEvidence, drawSeedValues, drawShares, text } = globalThis.pelabCharts;

const finite = (value) => Number.isFinite(value);
const signed = (value) => `${value < 0 ? '\u2212' : '+'}${Math.abs(value).toFixed(3)}`;

function seedsText(claim) {
  const { eligible, seeds } = claim;
  const learned = eligible < seeds ? `, ${eligible} of ${seeds} learned` : '';
  return `${claim.shows} of ${claim.n}${learned}`;
}

function shareText({ n, share_low: low, share_high: high }) {
  return n ? `${low.toFixed(2)} \u2026 ${high.toFixed(2)}` : '\u2013';
}

function medianText(claim) {
  if (claim.kind === 'most' || !claim.n) return '\u2013';
  if (!finite(claim.median_low) && !finite(claim.median_high)) return '\u2013';
  const limit = (value, none) => (finite(value) ? signed(value) : none);
  return `${limit(claim.median_low, '\u2212\u221e')} \u2026 ${limit(claim.median_high, '\u221e')}`;
}

// A property has no size: its share says it all.
function meanText({ kind, mean, t_half_width: half }) {
  if (kind === 'most' || !finite(mean)) return '\u2013';
  return finite(half) ? `${signed(mean)} \u00b1 ${half.toFixed(3)}` : signed(mean);
}

function costText(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

function restsOn(sheet) {
  const { first_seed: first, fresh_from: fresh } = sheet.registered;
  if (fresh <= first)
    return `Confirmatory: its seeds, from ${first} on, were trained after that.`;
  return `Seeds up to ${fresh - 1} were stored before that, so they are exploratory; later ones `
    + 'are confirmatory.';
}

function summary(sheet) {
  const counts = new Map();
  for (const { verdict } of sheet.claims) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  const several = { holds: 'hold', fails: 'fail' };
  const found = ['holds', 'fails', 'undecided', 'not eligible'].filter((one) => counts.has(one))
    .map((one) => `${counts.get(one)} ${(counts.get(one) > 1 && several[one]) || one}`);
  const { at_ms: at, jobs, rounds, slot_seconds: seconds } = sheet.registered;
  return `${text.visible(sheet.sheet)}: ${found.join(', ')}. Registered ${time(at)}. `
    + `${restsOn(sheet)} ${rounds} round${rounds === 1 ? '' : 's'}, ${jobs} jobs, `
    + `${costText(seconds)} of slot time.`;
}

function verdictsTable(sheet) {
  return table({
    columns: [
      { key: 'id', label: 'claim', kind: 'text' },
      { key: 'says', label: 'in words', kind: 'text' },
      ...(sheet.claims.some(({ source }) => source)
        ? [{ key: 'source', label: 'source', kind: 'text' }] : []),
      { key: 'verdict', label: 'verdict', kind: 'verdict' },
      { key: 'standing', label: 'standing', kind: 'text',
        title: 'open: gets further seeds; given up: unlikely to be decided' },
      { key: 'e', label: 'e', kind: 'number',
        title: 'The larger of its e-values; it is decided from the threshold on' },
      { key: 'threshold', label: 'threshold', kind: 'number' },
      { key: 'seeds', label: 'seeds', kind: 'text',
        title: 'How many show what is claimed; of several parts, the weakest' },
      { key: 'share', label: 'share', kind: 'text',
        title: 'Of all seeds, those that show it; 95 % at any time' },
      { key: 'size', label: 'mean \u00b1 t', kind: 'text',
        title: 'Of the claim\u2019s statistic, with the 95 % interval of a fixed number of seeds' },
      { key: 'median', label: 'median', kind: 'text',
        title: 'Of the claim\u2019s statistic, 95 % at any time' },
      { key: 'cost', label: 'cost', kind: 'text',
        title: 'Slot time of all its cells, which claims can share' }],
    rows: sheet.claims.map((claim) => ({ ...claim, e: Math.max(claim.e_holds, claim.e_fails),
                                         standing: text.standing(claim.standing),
                                         seeds: seedsText(claim), share: shareText(claim),
                                         size: meanText(claim), median: medianText(claim),
                                         cost: costText(claim.slot_seconds) })),
  }, { label: `Verdicts of ${sheet.sheet}` });
}

// One chart for each combination of the fields before the last two, which are its rows and columns.
// None for a claim with fewer cells than a table shows well.
function ladders(claims) {
  const fields = Object.keys(claims[0].each);
  if (fields.length < 2) return [];
  const [rowField, columnField] = fields.slice(-2);
  const valuesOf = (field) => [...new Set(claims.map(({ each }) => each[field]))];
  const rows = valuesOf(rowField), columns = valuesOf(columnField);
  const others = fields.slice(0, -2);
  const panelOf = ({ each }) => others.map((field) => each[field]).join(', ');
  return grouped(claims, panelOf).map(([panel, within]) => {
    const at = (row, column) => {
      const one = within.find(({ each }) => each[rowField] === row && each[columnField] === column);
      return one ? { label: one.id, k: one.shows, n: one.n, low: one.share_low,
                     high: one.share_high, verdict: one.verdict } : null;
    };
    const { claim, says } = claims[0];
    const title = panel ? `${claim}: ${panel}` : claim;
    return place('shares', title, (element) => drawShares(element, {
      rows: { field: rowField, values: rows }, columns: { field: columnField, values: columns },
      cells: rows.map((row) => columns.map((column) => at(row, column)))
    }, { title, description: `${says || claim}: the seeds that show it, and limits of the share of `
         + 'all seeds (95 %, at any time)' }));
  });
}

function charts(sheet) {
  return [...grouped(sheet.claims, ({ claim }) => claim).flatMap(([, claims]) => ladders(claims)),
          ...evidenceCharts(sheet)];
}

function evidenceCharts(sheet) {
  const name = text.visible(sheet.sheet);
  const evidence = place('evidence', name, (element) => drawEvidence(element, {
    claims: sheet.claims.filter((claim) => claim.history.length)
  }, { title: `Evidence of ${name}`,
       description: 'The larger e-value of each claim after each round. A claim is decided above '
         + 'its threshold, which falls as more claims are decided.' }));
  const sized = sheet.claims.filter((claim) => claim.kind !== 'most'
                                    && claim.statistics.some((one) => one.values.length));
  if (!sized.length) return [evidence];
  return [evidence, details('The value of every seed', sized.map(
    (claim) => place('seed values', claim.id, (element) => drawSeedValues(element, {
      limits: [...new Set(claim.sides.map((side) => side.limit))], statistics: claim.statistics,
      unit: claim.fraction ? `${claim.metric}, a fraction` : claim.metric
    }, { title: claim.id, description: claim.says })))
  )];
}

const LEGEND = 'e: the larger of two e-values, for the claim and against it. A claim is '
  + 'decided when it reaches the threshold. Seeds: that show the claim, of those that count. '
  + 'Share: of all seeds, those that show it. Limits of share and median are of 95 % and hold '
  + 'whenever one looks. Values of a seed are in the unit of the metric: an accuracy is a '
  + 'fraction.';

// Null for sweeps on which no sheet was settled.
export function sheetsSection() {
  if (!data.sheets?.length) return null;
  const made = section('claims', 'Claims',
                       'Statements that were written down, and what the seeds say about them. A '
                       + 'verdict is valid whenever one looks: of all decided claims of a sheet, '
                       + 'at most the stated share is expected to be wrong.');
  for (const sheet of data.sheets)
    made.append(paragraph(summary(sheet), ''), verdictsTable(sheet), paragraph(LEGEND),
                ...charts(sheet));
  return made;
}
