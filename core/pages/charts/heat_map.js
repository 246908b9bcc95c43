// The accuracy drop of each head, in points: layers by heads, on a scale that is symmetric about 0.
// An entry that does not exist is a gap, not a 0.
import { chart } from './figure.js';
import { plotlyText } from './text.js';

// Smallest end of the scale: smaller drops are noise in most models, and stay pale.
const LEAST_POINTS = 5;
const ROOM = 22;  // px: the narrowest cell with room for its value, or for its number on the axis

// Writes "-0" as "0".
const figureOf = (value, digits) => value.toFixed(digits).replace(/^-(?=0(\.0*)?$)/, '')
  .replace('-', '\u2212');

// data: {values: [layer][head] -> drop as a fraction or null, n?: the same for the number of seeds,
// counts?: the same for the number of seeds whose value is clear of its error (a value is not
// printed if this is 0), limit?: the end of the scale, ranks?: whether the columns are ranks within
// each seed, the largest drop first, and not heads}.
// options: title, description, name, height, percent (default true: fractions are shown in points),
// unit ("points").
export function drawHeatMap(element, data, options = {}) {
  const { percent = true, unit = percent ? 'points' : '' } = options;
  const scale = percent ? 100 : 1;
  const least = percent ? LEAST_POINTS : 0;
  return chart(element, { left: 48, ...options }, data, {
    zoom: false,
    paint: (now, theme, width) => {
      const layers = now.values.length, heads = Math.max(0, ...now.values.map((row) => row.length));
      const z = now.values.map(
        (row) => row.map((value) => (value === null || value === undefined ? null : value * scale))
      );
      const largest = Math.max(0, ...z.flat().filter(Number.isFinite).map(Math.abs));
      const limit = Math.max(now.limit ? now.limit * scale : largest, least) || 1;
      const cell = (width - (width < 520 ? 110 : 130)) / Math.max(heads, 1);
      const digits = percent && largest >= 1 ? 0 : 1;
      const room = cell >= ROOM;
      const step = Math.max(1, Math.ceil(ROOM / cell));
      const names = (count) => Array.from({ length: count }, (_, i) => String(i));
      const column = now.ranks ? 'rank' : 'head';
      const columns = now.ranks
        ? names(heads).map((head) => String(Number(head) + 1)) : names(heads);
      const grid = { x: columns, y: names(layers), xgap: 1, ygap: 1, type: 'heatmap' };
      const traces = [];
      const missing =
        z.map((row) => names(heads).map((_, head) => (Number.isFinite(row[head]) ? null : 0)));
      if (missing.flat().some((value) => value === 0)) {
        traces.push({
          ...grid, z: missing, colorscale: [[0, theme.gap], [1, theme.gap]], showscale: false,
          meta: { kind: 'gaps' }, opacity: 0.7,
          text: missing.map((row) => row.map((value) => (value === 0 ? '×' : ''))),
          texttemplate: '%{text}', textfont: { color: theme.muted },
          hovertemplate: `layer %{y}, ${column} %{x}: no value<extra></extra>`,
        });
      }
      traces.push({
        ...grid, z, zmin: -limit, zmax: limit, hoverongaps: false,
        colorscale: [[0, theme.low], [0.5, theme.middle], [1, theme.high]],
        customdata: z.map((row, layer) => row.map((_, head) => [
          now.n?.[layer]?.[head] ?? '', now.counts?.[layer]?.[head] ?? ''])),
        meta: { kind: 'values' },
        text: room ? z.map((row, layer) => row.map((value, head) => (
          Number.isFinite(value) && now.counts?.[layer]?.[head] !== 0
            ? figureOf(value, digits) : ''))) : undefined,
        texttemplate: room ? '%{text}' : undefined, textfont: { size: cell < 30 ? 9 : 11 },
        hovertemplate: `layer %{y}, ${column} %{x}: <b>%{z:.2f}</b> ${plotlyText(unit)}`
                       + (now.n ? '<br>mean of %{customdata[0]} seeds' : '')
                       + (now.counts ? '; clear of its error in %{customdata[1]}' : '')
                       + '<extra></extra>',
        colorbar: {
          thickness: width < 520 ? 7 : 10, outlinewidth: 0, tickfont: { color: theme.muted },
          ...(width < 520 ? {}
            : { title: { text: plotlyText(unit), side: 'right', font: { color: theme.muted } } }),
        },
      });
      return {
        traces,
        layout: {
          height: options.height
            ?? Math.min(640, Math.max(170, 80 + layers * Math.max(22, Math.min(40, cell)))),
          xaxis: { type: 'category', title: { text: column, standoff: 6 }, showgrid: false,
                   fixedrange: true, ticks: '', tickangle: 0, dtick: step },
          yaxis: { type: 'category', title: { text: 'layer', standoff: 6 }, showgrid: false,
                   fixedrange: true, autorange: 'reversed', ticks: '' },
        },
      };
    },
  });
}
