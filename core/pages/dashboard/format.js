// Formats times, states and counts.
export const STATES = {
  succeeded: { glyph: '✓', text: 'succeeded' },
  running: { glyph: '▸', text: 'running' },
  assigned: { glyph: '›', text: 'starting' },
  queued: { glyph: '·', text: 'queued' },
  failed: { glyph: '✕', text: 'failed' },
  cancelled: { glyph: '–', text: 'cancelled' },
};

const HASH = /^[0-9a-f]{64}$/;

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(hours / 24)} days ${hours % 24} h`;
}

export function clock(ms) {
  if (!Number.isFinite(ms)) return '–';
  const time = new Date(ms);
  const two = (n) => String(n).padStart(2, '0');
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} `
         + `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

export function count(n, what) {
  return `${Number(n).toLocaleString('en-US')} ${what}${n === 1 ? '' : 's'}`;
}

const KNOWN_BY_VALUE = new Set(['pe', 'pe_label', 'task', 'protocol']);

// "rope · train.lr 0.001": a group by these columns. Encodings, tasks and protocols are known by
// their names alone; any other value stands behind its field's name.
export function groupLabel(group, columns) {
  return columns.filter((name) => group[name] !== null && group[name] !== '')
    .map((name) => (KNOWN_BY_VALUE.has(name) ? group[name] : `${name} ${group[name]}`))
    .join(' · ');
}

export function bytes(n) {
  if (!(n > 0)) return '';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = Math.min(units.length - 1, Math.floor(Math.log2(n) / 10));
  return `${(n / 1024 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}

// Cuts the hashes in the answer's columns to their first 8 digits, or to as many more as it takes
// to tell them apart. `rows` are the answer's groups. Returns the answer.
export function withShortHashes(answer, rows) {
  const named = answer.columns.filter((name) => rows.some((row) => HASH.test(row[name])));
  const all = [...new Set(named.flatMap((name) => rows.map((row) => row[name])))]
    .filter((value) => HASH.test(value)).sort();
  let digits = 8;
  for (let i = 1; i < all.length; ++i)
    while (all[i].startsWith(all[i - 1].slice(0, digits))) ++digits;
  for (const row of rows)
    for (const name of named) if (HASH.test(row[name])) row[name] = row[name].slice(0, digits);
  return answer;
}
