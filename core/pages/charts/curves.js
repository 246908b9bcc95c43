// Metrics over the epochs: for each group, a line for the mean over its seeds, within a band for
// the mean's interval.
import { chart } from './figure.js';
import { plotlyText, seeds } from './text.js';
import { faded } from './theme.js';

// The band as closed outlines, one for each run of epochs that has an interval.
function outline(series) {
  const x = [], y = [];
  const { epochs, low, high } = series;
  const has = (i) => low && high && Number.isFinite(low[i]) && Number.isFinite(high[i]);
  for (let from = 0; from < epochs.length; ++from) {
    if (!has(from)) continue;
    let to = from;
    while (to + 1 < epochs.length && has(to + 1)) ++to;
    if (x.length) { x.push(null); y.push(null); }
    for (let i = from; i <= to; ++i) { x.push(epochs[i]); y.push(high[i]); }
    for (let i = to; i >= from; --i) { x.push(epochs[i]); y.push(low[i]); }
    x.push(epochs[from]); y.push(high[from]);
    from = to;
  }
  return { x, y };
}

const keyOf = (series) => series.key ?? series.label;

function bandTrace(series, color) {
  return {
    ...outline(series), type: 'scatter', mode: 'lines', fill: 'toself',
    fillcolor: faded(color, 0.16), line: { width: 0, color },
    hoverinfo: 'skip', showlegend: false, meta: { kind: 'band', key: keyOf(series) },
  };
}

function seedTraces(series, look) {
  return (series.seeds ?? []).map((seed) => ({
    x: series.epochs.slice(0, seed.values.length), y: seed.values, type: 'scatter', mode: 'lines',
    opacity: 0.55, showlegend: false,
    line: { color: look.color, width: 1, dash: 'dot' },
    meta: { kind: 'seed', key: keyOf(series), seed: seed.seed, label: plotlyText(series.label) },
    hovertemplate: '%{meta.label}, seed %{meta.seed}<br>epoch %{x}: %{y}<extra></extra>',
  }));
}

function meanTrace(series, look, percent) {
  const mode = series.epochs.length < 2 ? 'markers' : look.varied ? 'lines+markers' : 'lines';
  return {
    x: series.epochs, y: series.mean, type: 'scatter', mode, name: plotlyText(series.label),
    line: { color: look.color, width: 2, dash: look.dash },
    marker: { color: look.color, symbol: look.symbol, size: 8, maxdisplayed: 8 },
    connectgaps: false,
    customdata: series.epochs.map((_, i) => [halfText(series, i, percent),
                                             Array.isArray(series.n) ? series.n[i] : series.n]),
    meta: { kind: 'mean', key: keyOf(series), label: plotlyText(series.label), of: series.of },
    hovertemplate: `<b>%{meta.label}</b><br>epoch %{x}: `
                   + `%{y${percent ? ':.2%' : ':.4g'}}%{customdata[0]}<br>%{customdata[1]} of `
                   + '%{meta.of} seeds<extra></extra>',
  };
}

function halfText(series, i, percent) {
  if (!series.high || !Number.isFinite(series.high[i])) return '';
  const half = series.high[i] - series.mean[i];
  return percent ? ` ± ${(100 * half).toFixed(2)} %` : ` ± ${half.toPrecision(3)}`;
}

// The ends of an axis in round steps, so that the ticks of a growing curve move only now and then
// and not at every epoch. Leaves room for the margin that Plotly adds.
function roundEnds(low, high) {
  const room = 0.06 * (high - low);
  if (!(room > 0)) return [];
  const step = 10 ** Math.floor(Math.log10(high - low)) / 2;
  const down = low === 0 ? 0 : Math.floor((low - room) / step) * step;
  return [down, Math.ceil((high + room) / step) * step];
}

// There is no half epoch, but Plotly has ticks for it if there are few.
const wholeTicks = (last) => (last <= 8 ? { dtick: 1 } : {});

// The smallest and largest x or y of `traces`; with `fromZero`, 0 is included.
function extent(traces, name, fromZero) {
  let low = fromZero ? 0 : Infinity, high = fromZero ? 0 : -Infinity;
  for (const trace of traces) {
    for (const value of trace[name]) {
      if (!Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
  }
  return [low, high];
}

// data: {series: [{label, key?, epochs, mean, low, high, n, of, complete, seeds?: [{seed,
// values}]}]}. mean, low and high have one element per epoch; low and high may be null or contain
// nulls. n is one number or one per epoch. options: title, description, name, height, yLabel,
// xLabel, percent (default true), showSeeds.
export function drawCurves(element, data, options = {}) {
  const { percent = true, yLabel = '', xLabel = 'epoch' } = options;
  let withSeeds = options.showSeeds ?? false;
  const drawn = chart(element, options, data, {
    legend: (now) => now.series.map((series) => ({
      key: keyOf(series), label: series.label, warning: !series.complete,
      note: series.complete && series.n_done === undefined ? seeds(series.of)
        : seeds(series.n_done ?? most(series.n), series.of),
    })),
    paint: (now, theme, width, hidden) => {
      const shown = now.series.filter((series) => !hidden.has(keyOf(series)));
      const traces = [];
      for (const series of shown)
        traces.push(bandTrace(series, theme.series(keyOf(series)).color));
      if (withSeeds) for (const series of shown)
        traces.push(...seedTraces(series, theme.series(keyOf(series))));
      for (const series of shown)
        traces.push(meanTrace(series, theme.series(keyOf(series)), percent));
      return {
        traces,
        layout: {
          xaxis: {
            title: { text: plotlyText(xLabel), standoff: 8 }, rangemode: 'tozero', hoverformat: 'd',
            ...wholeTicks(extent(traces, 'x', true)[1]),
            autorangeoptions: { include: roundEnds(...extent(traces, 'x', true)) },
          },
          yaxis: {
            title: { text: plotlyText(yLabel), standoff: 8 },
            ...(percent ? { tickformat: '.0%', rangemode: 'tozero' } : {}),
            // With few seeds, an interval may extend beyond the possible accuracies.
            autorangeoptions: { include: roundEnds(...extent(traces, 'y', percent)),
                                ...(percent ? { clipmin: 0, clipmax: 1.02 } : {}) },
          },
        },
      };
    },
  });
  if (data.series.some((series) => series.seeds?.length > 1)) {
    const toggle = drawn.figure.button('Seeds', 'Show each seed', () => {
      withSeeds = !withSeeds;
      toggle.setAttribute('aria-pressed', String(withSeeds));
      drawn.figure.draw();
    });
    toggle.setAttribute('aria-pressed', String(withSeeds));
  }
  return drawn;
}

function most(n) {
  return Array.isArray(n) ? Math.max(0, ...n.filter(Number.isFinite)) : n;
}
