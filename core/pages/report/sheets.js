// The claim sheets that were settled on the report's sweeps: verdicts, evidence over seeds, and the
// values of every seed.
import { data, details, grouped, paragraph, place, section, table } from './page.js';
import { time } from './provenance.js';

const { claims: shown, drawEvidence, drawSeedValues, drawShares, text } = globalThis.pelabCharts;

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
    + `${shown.costText(seconds)} of slot time.`;
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
      ...shown.columns],
    rows: sheet.claims.map((claim) => ({ ...claim, standing: text.standing(claim.standing),
                                         ...shown.cells(claim) })),
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
