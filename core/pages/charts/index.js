// The charts of the report and of the coordinator's pages: `pelabCharts`, when it is loaded after Plotly.
//
// drawX(element, data, options) fills the element and returns {update(data), destroy(), data}; those that Plotly draws
// have toSvg() too. What data and options hold is said above each function. Numbers are as the views have them:
// accuracies and drops are fractions, layers, heads and epochs count from 0; null is a value that is not there.
// Labels may hold anything: they are shown as text. `key` decides on colour, dash and marker (default: the label), as
// registerLooks was told.
export { drawCurves } from './curves.js';
export { drawHeatMap } from './heat_map.js';
export { drawViolins, violinsTogether } from './violins.js';
export { drawHeadCounts, drawLayers } from './points.js';
export { drawSparkline } from './sparkline.js';
export { drawTable } from './table.js';
export { make } from './figure.js';
export { registerLabels, registerLooks, styleOf, themeOf, onThemeChange } from './theme.js';
export * as text from './text.js';
