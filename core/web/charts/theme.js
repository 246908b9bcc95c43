// Colours and lines. What is drawn takes its colours from the custom properties of style/base.css, so that it
// is dark where the page is.

const SLOTS = 10;  // --series-0 … --series-9
const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];
const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'x', 'cross', 'triangle-down', 'star', 'pentagon', 'hexagon'];

// Encodings have their own colour on every page; everything else takes the next free one by its name.
const KNOWN = ['rope', 'nope', 'absolute', 'random', 'relative', 'alibi', 'mla', 'rope_abs', 'partial_rope', 'shaw', 'xpos'];

const taken = new Map();  // slot (colour and dash) -> key
const slots = new Map();  // key -> slot

function hash(text) {
  let value = 2166136261;
  for (let i = 0; i < text.length; ++i) value = Math.imul(value ^ text.charCodeAt(i), 16777619) >>> 0;
  return value;
}

function slotOf(key) {
  if (slots.has(key)) return slots.get(key);
  const known = KNOWN.indexOf(key);
  let slot = known >= 0 ? known : hash(key) % SLOTS;
  const rows = SLOTS * DASHES.length;
  // A colour nobody has, then the same colours dashed; after all of them, shared ones.
  const free = (candidate) => !taken.has(candidate) && (candidate >= KNOWN.length || known === candidate);
  for (let step = 0; known < 0 && step < rows; ++step) {
    const row = Math.floor(step / SLOTS);
    const candidate = row * SLOTS + ((slot % SLOTS) + step) % SLOTS;
    if (free(candidate)) { slot = candidate; break; }
  }
  taken.set(slot, key);
  slots.set(key, slot);
  return slot;
}

// Gives labels their colours in sorted order: call it once with all that a page may show, so that they do not
// depend on which chart is drawn first.
export function registerLabels(keys) {
  for (const key of [...new Set(keys.map(String))].sort()) slotOf(key);
}

// The same key looks the same in every chart of the page.
export function styleOf(key) {
  const slot = slotOf(String(key));
  return {
    variable: `--series-${slot % SLOTS}`,
    dash: DASHES[Math.floor(slot / SLOTS) % DASHES.length],
    symbol: SYMBOLS[slot % SYMBOLS.length],
  };
}

// The colours in force at an element.
export function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  return {
    text: read('--text', '#1c2430'), muted: read('--muted', '#5b6675'), grid: read('--grid', '#e3e7ec'),
    surface: read('--surface', '#ffffff'), gap: read('--gap', '#d8dde3'), font: read('--font', 'sans-serif'),
    low: read('--diverging-low', '#2166ac'), middle: read('--diverging-middle', '#f7f7f7'), high: read('--diverging-high', '#b2182b'),
    series: (key) => {
      const look = styleOf(key);
      return { ...look, colour: read(look.variable, '#1f6fb2') };
    },
  };
}

// "#rrggbb" as rgba.
export function faded(colour, alpha) {
  const parts = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
  return parts ? `rgba(${parts.slice(1).map((part) => parseInt(part, 16)).join(',')},${alpha})` : colour;
}

const listeners = new Set();
let watching = false;

function tell() {
  for (const listener of [...listeners]) listener();
}

// Calls back when the page turns dark or light; the result ends that.
export function onThemeChange(listener) {
  if (!watching) {
    watching = true;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell);
    new MutationObserver(tell).observe(document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class'] });
  }
  listeners.add(listener);
  return () => listeners.delete(listener);
}
