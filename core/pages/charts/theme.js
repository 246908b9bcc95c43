// Colors and lines. An encoding has one color in every chart of the page; its variants differ in
// dash and marker (style/looks.json). Other colors come from the custom properties of
// style/base.css, so that charts are dark on a dark page.
import LOOKS from '../style/looks.json';

const colorSlots = new Map();  // encoding -> slot of LOOKS.light
const looks = new Map();        // key of a series -> {encoding, axis, own, variant}
// The settings beside the encoding, in the order of the page's groups: they set the dash.
let axes = [''];
const owns = new Map();  // encoding -> its own parameters that vary: they set the marker

// The slot of an encoding in the catalog never changes. Any other encoding gets the first slot that
// no encoding of the page has. After the last color, colors repeat with other dashes and markers.
function colorSlot(encoding) {
  if (colorSlots.has(encoding)) return colorSlots.get(encoding);
  const known = LOOKS.encodings.indexOf(encoding);
  const taken = new Set(colorSlots.values());
  const count = LOOKS.light.length;
  const candidates = [...Array(count + taken.size + 1).keys()];
  const unused = [...candidates.slice(LOOKS.encodings.length, count),
                  ...candidates.slice(0, LOOKS.encodings.length), ...candidates.slice(count)];
  const slot = known >= 0 ? known : unused.find((one) => !taken.has(one));
  colorSlots.set(encoding, slot);
  return slot;
}

// Registers how series look. Call it once with everything that a page may show, so that looks do
// not depend on which chart is drawn first. items: [{key, encoding, axis, own}]. axis holds the
// settings that vary beside the encoding ("train.lr=0.001"), own the encoding's own parameters that
// vary ("heads=2"); either may be ''. For series that are distinguished in another way, `variant`
// is the number of their dash and marker.
export function registerLooks(items) {
  for (const { key, encoding, axis = '', own = '', variant } of items)
    looks.set(String(key), { encoding: String(encoding), axis, own, variant });
  const known = (encoding) => LOOKS.encodings.includes(encoding);
  const encodings = [...new Set(items.map((item) => String(item.encoding)))];
  for (const encoding of [...encodings.filter(known), ...encodings.filter((one) => !known(one))])
    colorSlot(encoding);
  const cells = [...looks.values()].filter((look) => look.variant === undefined);
  axes = [...new Set(cells.map((look) => look.axis))];
  owns.clear();
  for (const { encoding, own } of cells)
    owns.set(encoding, [...new Set([...(owns.get(encoding) ?? []), own])]);
}

// For series that are distinguished by one label each: a color for each label.
export function registerLabels(keys) {
  registerLooks([...new Set(keys.map(String))].map((key) => ({ key, encoding: key })));
}

// The look of a key, the same in every chart of the page: {variable (the color's custom property),
// dash (lengths in px, none: solid), symbol, varied (whether its encoding has other variants on the
// page)}.
export function styleOf(key) {
  const { encoding, axis, own, variant } = looks.get(String(key))
    ?? { encoding: String(key), axis: axes[0], own: '' };
  const mine = owns.get(encoding) ?? [own];
  const at = Math.max(0, axes.indexOf(axis)), ownAt = Math.max(0, mine.indexOf(own));
  const slot = colorSlot(encoding), again = Math.floor(slot / LOOKS.light.length);
  const dash = again + (variant ?? (axes.length > 1 ? at : ownAt)),
        symbol = again + (variant ?? (mine.length > 1 ? ownAt : at));
  return {
    variable: `--series-${slot % LOOKS.light.length}`,
    dash: LOOKS.dashes[dash % LOOKS.dashes.length],
    symbol: LOOKS.markers[symbol % LOOKS.markers.length],
    varied: variant > 0 || axes.length > 1 || mine.length > 1,
  };
}

// The colors in effect at an element.
export function themeOf(element) {
  const style = getComputedStyle(element);
  const read = (name, otherwise) => style.getPropertyValue(name).trim() || otherwise;
  return {
    text: read('--text', '#1c2430'), muted: read('--muted', '#5b6675'),
    grid: read('--grid', '#e3e7ec'),
    surface: read('--surface', '#ffffff'), gap: read('--gap', '#d8dde3'),
    font: read('--font', 'sans-serif'),
    low: read('--diverging-low', '#2166ac'), middle: read('--diverging-middle', '#f7f7f7'),
    high: read('--diverging-high', '#b2182b'),
    // In the form that Plotly takes.
    series: (key) => {
      const look = styleOf(key);
      return { ...look, color: read(look.variable, '#1f6fb2'), dash: look.dash.length
                 ? look.dash.map((length) => `${length}px`).join(',') : 'solid' };
    },
  };
}

// Converts "#rrggbb" to rgba.
export function faded(color, alpha) {
  const parts = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color);
  return parts ? `rgba(${parts.slice(1).map((part) => parseInt(part, 16)).join(',')},${alpha})`
    : color;
}

const listeners = new Set();
let watching = false;

function tell() {
  for (const listener of [...listeners]) listener();
}

// Calls `listener` when the page turns dark or light; the returned function stops that.
export function onThemeChange(listener) {
  if (!watching) {
    watching = true;
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', tell);
    new MutationObserver(tell).observe(
      document.documentElement, { attributes: true, attributeFilter: ['data-theme', 'class'] });
  }
  listeners.add(listener);
  return () => listeners.delete(listener);
}
