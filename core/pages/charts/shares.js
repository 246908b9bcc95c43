// How many seeds show a claim, over two fields of what was trained: where something begins.
import { chart } from './figure.js';
import { plotlyText } from './text.js';

const ROOM = 62;  // px: the narrowest cell with room for the limits of its share

// data: {rows: {field, values}, columns: {field, values}, cells: [row][column] -> null or
// {label, k, n, low, high, verdict}}. k of n seeds show the claim; low and high limit the share of
// all seeds.
export function drawShares(element, data, options = {}) {
  return chart(element, options, data, {
    zoom: false,
    paint: (now, theme, width) => {
      const { rows, columns, cells } = now;
      const cell = (width - 152) / Math.max(columns.values.length, 1);
      const each = (valueOf, none = null) => cells.map((row) => row.map((one) => (
        one ? valueOf(one) : none)));
      const limits = ({ low, high }) => `${low.toFixed(2)}\u2013${high.toFixed(2)}`;
      const textOf = (one) => {
        if (!one.n) return '\u2013';
        return `${one.k} of ${one.n}${cell < ROOM ? '' : `<br>${limits(one)}`}`;
      };
      return {
        traces: [{
          type: 'heatmap', x: columns.values.map(plotlyText), y: rows.values.map(plotlyText),
          // The middle of the limits: the color of few seeds is pale, however much they agree.
          z: each((one) => (one.n ? (one.low + one.high) / 2 : 0.5)), zmin: 0, zmax: 1, xgap: 2,
          ygap: 2,
          colorscale: [[0, theme.low], [0.5, theme.middle], [1, theme.high]], hoverongaps: false,
          text: each(textOf, ''), texttemplate: '%{text}', textfont: { size: 11 },
          customdata: each((one) => [plotlyText(one.label), one.k, one.n, limits(one),
                                     one.verdict]),
          meta: { kind: 'shares' },
          hovertemplate: '<b>%{customdata[0]}</b>: %{customdata[4]}<br>%{customdata[1]} of '
                         + '%{customdata[2]} seeds, share %{customdata[3]}<extra></extra>',
          colorbar: { thickness: 10, outlinewidth: 0, tickfont: { color: theme.muted },
                      title: { text: 'middle of the limits', side: 'right',
                               font: { color: theme.muted } } },
        }],
        layout: {
          height: Math.max(150, 90 + 44 * rows.values.length),
          xaxis: { type: 'category', title: { text: plotlyText(columns.field), standoff: 6 },
                   showgrid: false, fixedrange: true, ticks: '', tickangle: 0 },
          yaxis: { type: 'category', title: { text: plotlyText(rows.field), standoff: 6 },
                   showgrid: false, fixedrange: true, autorange: 'reversed', ticks: '' },
        },
      };
    },
  });
}
