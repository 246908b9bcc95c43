// The distribution of the drops of each layer's heads: one violin per layer, with a point for every
// head of every seed.
import { chart } from './figure.js';
import { plotlyText } from './text.js';
import { faded } from './theme.js';

// With fewer points in a layer, a density means little: only the points are drawn.
const FEWEST = 12;

// The properties that the violins of a page share, so that they can be compared: whether densities
// are drawn, and the ends of the axis as fractions. sets: the `layers` of each chart.
export function violinsTogether(sets) {
  const layers = sets.flat();
  const values = layers.flatMap(({ points }) => points.map((point) => point.value))
    .filter(Number.isFinite);
  const step = 0.05, room = 0.02;
  const low = Math.min(0, ...values), high = Math.max(0, ...values);
  return {
    density: layers.length > 0 && layers.every(({ points }) => points.length >= FEWEST),
    range: [Math.floor((low - room) / step) * step, Math.ceil((high + room) / step) * step],
  };
}

// data: {layers: [{layer, points: [{value, head, seed}]}], label?, key?}; value is a drop as a
// fraction. options: title, description, name, height, percent (default true: shown in points),
// yLabel, together (from violinsTogether; default: computed for this chart alone).
export function drawViolins(element, data, options = {}) {
  const { percent = true, yLabel = percent ? 'drop in points' : 'drop' } = options;
  const scale = percent ? 100 : 1;
  return chart(element, options, data, {
    paint: (now, theme) => {
      const look = theme.series(now.key ?? now.label ?? 'drops');
      const { density, range } = options.together ?? violinsTogether([now.layers]);
      const few = !density;
      const traces = now.layers.map(({ layer, points }) => {
        const values = points.map((point) => point.value * scale);
        return {
          type: 'violin', x0: String(layer), y: values, name: String(layer), points: 'all',
          pointpos: 0, jitter: few ? 0.35 : 0.6,
          spanmode: 'hard', scalemode: 'width', width: 0.85,
          meanline: { visible: !few, color: look.color, width: 1 },
          line: { color: few ? 'rgba(0,0,0,0)' : look.color, width: 1 },
          fillcolor: few ? 'rgba(0,0,0,0)' : faded(look.color, 0.18),
          marker: { color: look.color, size: few ? 7 : 4, opacity: 0.75 }, hoveron: 'points',
          meta: { kind: few ? 'strip' : 'violin', layer },
          customdata: points.map((point) => [point.head, point.seed]),
          hovertemplate: `layer ${Number(layer)}, head %{customdata[0]}, seed %{customdata[1]}: `
                         + '<b>%{y:.2f}</b><extra></extra>',
        };
      });
      return {
        traces,
        layout: {
          xaxis: { type: 'category', title: { text: 'layer', standoff: 6 }, fixedrange: true },
          yaxis: { title: { text: plotlyText(yLabel), standoff: 8 },
                   autorangeoptions: { minallowed: range[0] * scale, maxallowed: range[1] * scale },
                   zeroline: true, zerolinecolor: theme.muted },
        },
      };
    },
  });
}
