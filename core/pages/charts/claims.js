// The columns about the evidence of claims, for tables of verdicts.
const finite = (value) => Number.isFinite(value);
// A value must not break into lines.
const kept = (words) => words.replaceAll(' ', '\u00a0');
const signed = (value) => `${value < 0 ? '\u2212' : '+'}${Math.abs(value).toFixed(3)}`;

function seedsText({ shows, n, eligible, seeds }) {
  return `${shows} of ${n}${eligible < seeds ? `, ${eligible} of ${seeds} learned` : ''}`;
}

function shareText({ n, share_low: low, share_high: high }) {
  return n ? `${low.toFixed(2)} \u2026 ${high.toFixed(2)}` : '\u2013';
}

// A property has no size: its share says it all.
function meanText({ kind, mean, t_half_width: half }) {
  if (kind === 'most' || !finite(mean)) return '\u2013';
  return finite(half) ? `${signed(mean)} \u00b1 ${half.toFixed(3)}` : signed(mean);
}

function medianText({ kind, n, median_low: low, median_high: high }) {
  if (kind === 'most' || !n || (!finite(low) && !finite(high))) return '\u2013';
  const limit = (value, none) => (finite(value) ? signed(value) : none);
  return `${limit(low, '\u2212\u221e')} \u2026 ${limit(high, '\u221e')}`;
}

// "40 s", "12 min", "3.5 h".
export function costText(seconds) {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  return seconds < 3600 ? `${Math.ceil(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export const columns = [
  { key: 'e', label: 'e', kind: 'number',
    title: 'The larger of its e-values; it is decided from the threshold on' },
  { key: 'threshold', label: 'threshold', kind: 'number' },
  { key: 'seeds', label: 'seeds', kind: 'words',
    title: 'How many show what is claimed; of several parts, the weakest' },
  { key: 'share', label: 'share', kind: 'words',
    title: 'Of all seeds, those that show it; 95 % at any time' },
  { key: 'size', label: 'mean \u00b1 t', kind: 'words',
    title: 'Of the claim\u2019s statistic, with the 95 % interval of a fixed number of seeds' },
  { key: 'median', label: 'median', kind: 'words',
    title: 'Of the claim\u2019s statistic, 95 % at any time' },
  { key: 'cost', label: 'cost', kind: 'words',
    title: 'Slot time of all its cells, which claims can share' }];

// The values of these columns for one claim of `claims show --output json` or of the API, which has
// only e-values of a sheet that this version of pelab cannot read.
export function cells(claim) {
  const evidence = { e: Math.max(claim.e_holds, claim.e_fails), threshold: claim.threshold };
  if (claim.n === undefined) return evidence;
  const words = (text, mean) => ({ text: kept(text), mean });
  return { ...evidence, seeds: words(seedsText(claim), claim.n ? claim.shows / claim.n : null),
           share: words(shareText(claim), claim.share_low),
           size: words(meanText(claim), claim.mean),
           median: words(medianText(claim), claim.median_low),
           cost: words(costText(claim.slot_seconds), claim.slot_seconds) };
}
