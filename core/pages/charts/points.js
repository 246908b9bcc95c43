// Means with intervals at integer positions: accuracy by the number of RoPE heads, drops by layer.
import { chart } from './figure.js';
import { plotlyText, seeds } from './text.js';

const keyOf = (series) => series.key ?? series.label;
const finite = (value) => (Number.isFinite(value) ? value : null);

function pointTrace(series, look, { scale, unit, xName, offset }) {
  const points = [...series.points].sort((a, b) => a.x - b.x);
  const up =
    points.map((point) => (Number.isFinite(point.high) ? (point.high - point.mean) * scale : null));
  const down =
    points.map((point) => (Number.isFinite(point.low) ? (point.mean - point.low) * scale : null));
  return {
    type: 'scatter', mode: points.length > 1 ? 'lines+markers' : 'markers',
    name: plotlyText(series.label),
    x: points.map((point) => point.x + offset),
    y: points.map((point) => (Number.isFinite(point.mean) ? point.mean * scale : null)),
    error_y: { type: 'data', symmetric: false, array: up, arrayminus: down, thickness: 1.4,
               width: 4, color: look.color },
    line: { color: look.color, width: 2, dash: look.dash },
    marker: { color: look.color, symbol: look.symbol, size: 8 }, connectgaps: true,
    customdata: points.map((point, i) => [point.x, up[i] === null ? '' : ` ± ${up[i].toFixed(2)}`,
                                          seeds(point.n, point.of)]),
    meta: { kind: 'points', key: keyOf(series), label: plotlyText(series.label) },
    hovertemplate: `<b>%{meta.label}</b><br>${plotlyText(xName)} %{customdata[0]}: `
                   + `%{y:.2f}%{customdata[1]} ${unit}<br>%{customdata[2]}<extra></extra>`,
  };
}

// A reference level across the whole width, with its interval.
function levelTraces(level, look, scale, range) {
  const traces = [];
  if (Number.isFinite(level.low) && Number.isFinite(level.high)) {
    traces.push({
      type: 'scatter', mode: 'lines', x: [range[0], range[1], range[1], range[0]],
      line: { width: 0 }, fill: 'toself', opacity: 0.12, fillcolor: look.color,
      y: [level.low, level.low, level.high, level.high].map((value) => value * scale),
      hoverinfo: 'skip', showlegend: false, meta: { kind: 'band', key: keyOf(level) },
    });
  }
  traces.push({
    type: 'scatter', mode: 'lines', x: range, y: [level.mean * scale, level.mean * scale],
    name: plotlyText(level.label),
    line: { color: look.color, width: 1.5, dash: look.dash },
    meta: { kind: 'level', key: keyOf(level), label: plotlyText(level.label) },
    hovertemplate: '<b>%{meta.label}</b>: %{y:.2f}<extra></extra>',
  });
  return traces;
}

function drawPoints(element, data, options, { xLabel, yLabel, unit, spread }) {
  const scale = 100;
  const levels = (now) => (now.levels ?? []).filter((level) => finite(level.mean) !== null);
  return chart(element, options, data, {
    legend: (now) => [...now.series, ...levels(now)].map((series) => {
      const lacking = (series.points ?? [series]).filter((point) => point.n < point.of);
      const fewest = lacking.reduce((least, point) => (point.n < least.n ? point : least),
                                    lacking[0]);
      return { key: keyOf(series), label: series.label, warning: lacking.length > 0,
               note: fewest ? seeds(fewest.n, fewest.of) : '' };
    }),
    paint: (now, theme, width, hidden) => {
      const shown = now.series.filter((series) => !hidden.has(keyOf(series)));
      const xs = [
        ...new Set(now.series.flatMap((series) => series.points.map((point) => point.x)))
      ].sort((a, b) => a - b);
      const range = [Math.min(...xs, Infinity), Math.max(...xs, -Infinity)];
      const traces = [];
      if (xs.length) {
        const pad = Math.max(0.3, (range[1] - range[0]) * 0.03);
        for (const level of levels(now)) {
          if (!hidden.has(keyOf(level)))
            traces.push(...levelTraces(level, theme.series(keyOf(level)), scale,
                                       [range[0] - pad, range[1] + pad]));
        }
      }
      shown.forEach((series, i) => traces.push(pointTrace(series, theme.series(keyOf(series)), {
        scale, unit, xName: xLabel, offset: spread ? (i - (shown.length - 1) / 2) * spread : 0,
      })));
      return {
        traces,
        layout: {
          xaxis: { title: { text: plotlyText(xLabel), standoff: 8 }, tickmode: 'array',
                   tickvals: xs, zeroline: false },
          yaxis: {
            title: { text: plotlyText(yLabel), standoff: 8 },
            ticksuffix: unit === '%' ? ' %' : '', rangemode: 'tozero',
            ...(unit === '%' ? { autorangeoptions: { clipmin: 0, clipmax: 102 } }
              : options.range ? { autorangeoptions: { minallowed: options.range[0] * scale,
                                                      maxallowed: options.range[1] * scale } }
                : {}),
            zeroline: true, zerolinecolor: theme.muted,
          },
        },
      };
    },
  });
}

// data: {series: [{label, key?, points: [{x, mean, low, high, n, of}]}], levels?: [{label, key?,
// mean, low, high, n, of}]}. x is the number of heads with RoPE; accuracies are fractions. Levels
// are horizontal lines (RoPE in all heads, RoPE in none).
export function drawHeadCounts(element, data, options = {}) {
  return drawPoints(element, data, options, {
    xLabel: 'heads with RoPE', yLabel: options.yLabel ?? 'test accuracy', unit: '%', spread: 0
  });
}

// data: {series: [{label, key?, points: [{x, mean, low, high, n, of}]}]}. x is a layer; means are
// drops as fractions. options.range: the ends of the axis as fractions, for charts that are to be
// compared.
export function drawLayers(element, data, options = {}) {
  return drawPoints(element, data, options, {
    xLabel: 'layer', yLabel: options.yLabel ?? 'largest drop of a head, in points', unit: 'points',
    spread: 0.06
  });
}
