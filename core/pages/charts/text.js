// Makes texts from users (names, labels, errors) safe to show, and formats numbers.

// Characters with an effect instead of a shape: control characters, and those that change the
// direction of the text around them. They are shown as pictures or by number.
const ACTING =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

function picture(character) {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return '\u2421';
  return `\\u${code.toString(16).padStart(4, '0')}`;
}

// The text with such characters replaced. For textContent.
export function visible(text) {
  return String(text ?? '').replace(ACTING, picture);
}

// The same for Plotly, which interprets tags, entities and line breaks in every text that it draws.
export function plotlyText(text) {
  return visible(text).replace(/[\n\t]/g, ' ').replace(/&/g, '&amp;').replace(/</g, '&lt;')
    .replace(/>/g, '&gt;');
}

// "93.5 %" for 0.935; "–" if there is no value.
export function percent(fraction, digits = 1) {
  return Number.isFinite(fraction) ? `${(100 * fraction).toFixed(digits)}\u2009%` : '–';
}

// "+12.3" for 0.123: a difference in percentage points.
export function points(fraction, digits = 1) {
  if (!Number.isFinite(fraction)) return '–';
  const text = (100 * fraction).toFixed(digits);
  const rounded = Number(text);
  return rounded > 0 ? `+${text}` : rounded < 0 ? `\u2212${text.slice(1)}` : (0).toFixed(digits);
}

// For an accuracy: "93.5 ± 1.2 %"; "98.5 % (92.1 to 100.0 %)" if ± would pass 0 or 100 %; "93.5 %"
// without an interval.
export function interval(mean, halfWidth, digits = 1) {
  if (!Number.isFinite(mean)) return '–';
  if (!Number.isFinite(halfWidth)) return percent(mean, digits);
  const [low, high] = [mean - halfWidth, mean + halfWidth];
  if (low >= 0 && high <= 1) {
    const text = (value) => (100 * value).toFixed(digits);
    return `${text(mean)}\u2009±\u2009${text(halfWidth)}\u2009%`;
  }
  const ends = [Math.max(low, 0), Math.min(high, 1)].map((end) => (100 * end).toFixed(digits));
  return `${percent(mean, digits)} (${ends.join(' to ')}\u2009%)`;
}

export function number(value, digits = 3) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(digits))) : '–';
}

// "3 seeds", "2 of 3 seeds".
export function seeds(n, of = n) {
  const all = of === 1 ? '1 seed' : `${of} seeds`;
  return n === of ? all : `${n} of ${all}`;
}

// Whether a claim gets further seeds, in words. "futile" is the word of the stored rows.
export function standing(stored) {
  return stored === 'futile' ? 'given up' : stored ?? '–';
}

// A file name made from a text: its letters, digits and dots; all else becomes dashes.
export function fileName(text) {
  return visible(text).toLowerCase().replace(/[^a-z0-9.]+/g, '-').replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 80) || 'chart';
}
