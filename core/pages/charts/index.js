// The charts of the report and of the coordinator's pages: `pelabCharts`, to be loaded after
// Plotly.
//
// drawX(element, data, options) fills the element and returns {update(data), destroy(), data};
// charts drawn by Plotly also have toSvg(). The comment above each function describes its data and
// options. Numbers are as in the views: accuracies and drops are fractions; layers, heads and
// epochs count from 0; null is an absent value. Labels may contain anything: they are shown as
// text. `key` (default: the label) determines color, dash and marker, as set by registerLooks.
export { drawCurves } from './curves.js';
export { drawEvidence, drawSeedValues } from './evidence.js';
export { drawHeatMap } from './heat_map.js';
export { drawViolins, violinsTogether } from './violins.js';
export { drawHeadCounts, drawLayers } from './points.js';
export { drawShares } from './shares.js';
export { drawSparkline } from './sparkline.js';
export { drawTable } from './table.js';
export { make } from './figure.js';
export { registerLabels, registerLooks, styleOf, themeOf, onThemeChange } from './theme.js';
export * as claims from './claims.js';
export * as text from './text.js';
