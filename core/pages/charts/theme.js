// Colours and lines. An encoding has one colour in every chart of the page; its variants differ in dash and marker
// (style/looks.json). Other colours come from the custom properties of style/base.css, so that what is drawn is dark
// where the page is.
import LOOKS from '../style/looks.json';

const colourSlots = new Map();  // encoding -> slot of LOOKS.light
const looks = new Map();        // key of a series -> {encoding, axis, own, variant}
let axes = [''];                // what varies beside the encoding, in the order of the page's cells: it decides on the dash
const owns = new Map();         // encoding -> its parameters that vary: they decide on the marker

// The slot of the catalog's encodings never changes; others take the first that no encoding of the page has. Past the
// last colour they begin again with other dashes and markers.
function colourSlot(encoding) {
  if (colourSlots.has(encoding)) return colourSlots.get(encoding);
  const known = LOOKS.encodings.indexOf(encoding);
  const taken = new Set(colourSlots.values());
  const count = LOOKS.light.length;
  const candidates = [...Array(count + taken.size + 1).keys()];
  const unused = [...candidates.slice(LOOKS.encodings.length, count), ...candidates.slice(0, LOOKS.encodings.length), ...candidates.slice(count)];
  const slot = known >= 0 ? known : unused.find((one) => !taken.has(one));
  colourSlots.set(encoding, slot);
  return slot;
}

// Says how series look: call it once with all that a page may show, so that looks do not depend on which chart is drawn
// first. items: [{key, encoding, axis, own}]; axis is what varies beside the encoding ("train.lr=0.001"), own the
// encoding's parameters that vary ("heads=2"); either may be ''. Of a series that is told apart otherwise, `variant` is
// the number of its dash and marker.
export function registerLooks(items) {
  for (const { key, encoding, axis = '', own = '', variant } of items) looks.set(String(key), { encoding: String(encoding), axis, own, variant });
  const known = (encoding) => LOOKS.encodings.includes(encoding);
  const encodings = [...new Set(items.map((item) => String(item.encoding)))];
  for (const encoding of [...encodings.filter(known), ...encodings.filter((one) => !known(one))]) colourSlot(encoding);
  const cells = [...looks.values()].filter((look) => look.variant === undefined);
  axes = [...new Set(cells.map((look) => look.axis))];
  owns.clear();
  for (const { encoding, own } of cells) owns.set(encoding, [...new Set([...(owns.get(encoding) ?? []), own])]);
}

// Series that are told apart by one label each: a colour for each.
export function registerLabels(keys) {
  registerLooks([...new Set(keys.map(String))].map((key) => ({ key, encoding: key })));
}

// The same key looks the same in every chart of the page: {variable (the colour's custom property), dash (lengths in px,
// none: solid), symbol, varied (whether its encoding has other variants on the page)}.
export function styleOf(key) {
  const { encoding, axis, own, variant } = looks.get(String(key)) ?? { encoding: String(key), axis: axes[0], own: '' };
  const mine = owns.get(encoding) ?? [own];
  const at = Math.max(0, axes.indexOf(axis)), ownAt = Math.max(0, mine.indexOf(own));
  const slot = colourSlot(encoding), again = Math.floor(slot / LOOKS.light.length);
  const dash = again + (variant ?? (axes.length > 1 ? at : ownAt)), symbol = again + (variant ?? (mine.length > 1 ? ownAt : at));
  return {
    variable: `--series-${slot % LOOKS.light.length}`, dash: LOOKS.dashes[dash % LOOKS.dashes.length],
    symbol: LOOKS.markers[symbol % LOOKS.markers.length], varied: variant > 0 || axes.length > 1 || mine.length > 1,
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
    // As Plotly takes it.
    series: (key) => {
      const look = styleOf(key);
      return { ...look, colour: read(look.variable, '#1f6fb2'), dash: look.dash.length ? look.dash.map((length) => `${length}px`).join(',') : 'solid' };
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
