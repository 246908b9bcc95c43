// What the seeds say about claims: e-values over seeds, and the values of single seeds.
import { chart } from './figure.js';
import { plotlyText } from './text.js';

// Verdicts have the colors that they have in tables.
const TONES = { holds: '--good', fails: '--bad' };

function toneOf(element, verdict, theme) {
  const name = TONES[verdict];
  return (name && getComputedStyle(element).getPropertyValue(name).trim()) || theme.muted;
}

// data: {claims: [{id, verdict, threshold (an e-value), history: [[seeds, log10 e], …]}]}.
export function drawEvidence(element, data, options = {}) {
  return chart(element, options, data, {
    paint: (now, theme) => {
      const traces = now.claims.map((claim) => ({
        type: 'scatter', mode: 'lines+markers', name: plotlyText(claim.id),
        x: claim.history.map(([seeds]) => seeds), y: claim.history.map(([, log]) => 10 ** log),
        line: { color: toneOf(element, claim.verdict, theme), width: 1.5 }, marker: { size: 5 },
        meta: { kind: 'evidence', label: plotlyText(claim.id), verdict: claim.verdict },
        hovertemplate: `<b>%{meta.label}</b> (%{meta.verdict})<br>%{x} seeds: e = %{y:.3g}`
                       + '<extra></extra>',
      }));
      const most = Math.max(1, ...now.claims.flatMap((claim) => claim.history.map(([x]) => x)));
      const thresholds = [...new Set(now.claims.map((claim) => claim.threshold))];
      for (const threshold of thresholds) {
        traces.push({
          type: 'scatter', mode: 'lines', x: [0, most], y: [threshold, threshold],
          line: { color: theme.text, width: 1, dash: '4px,3px' }, showlegend: false,
          meta: { kind: 'threshold', label: threshold },
          hovertemplate: `threshold ${threshold.toFixed(1)}<extra></extra>`,
        });
      }
      return { traces, layout: {
        xaxis: { title: { text: 'seeds', standoff: 8 }, rangemode: 'tozero' },
        yaxis: { title: { text: 'e-value', standoff: 8 }, type: 'log', dtick: 1,
                 exponentformat: 'power' },
      } };
    },
  });
}

// The cells of a statistic with their signs: "rope - nope". If two of them have one encoding, the
// settings in which the statistic's cells differ tell them apart: "rope layers=6 - rope layers=2".
export function statisticName({ cells }) {
  const of = cells.map(({ pe, settings = {} }) => ({ pe, ...settings }));
  const alone = new Set(cells.map(({ pe }) => pe)).size === cells.length;
  const fields = alone ? [] : Object.keys(of[0]).filter((field) => (
    field !== 'pe' && new Set(of.map((cell) => cell[field])).size > 1));
  return cells.map(({ pe, weight }, i) => {
    const size = Math.abs(weight) === 1 ? '' : `${Math.abs(weight)} `;
    const settings = fields.map((field) => ` ${field.replace(/^.*\./, '')}=${of[i][field]}`);
    const sign = weight < 0 ? ' \u2212 ' : i > 0 ? ' + ' : '';
    return `${sign}${size}${pe}${settings.join('')}`;
  }).join('');
}

// data: {limits: [numbers that the claim names], unit: title of the axis of values, statistics:
// [{cells: [{pe, settings, weight}], median_low, median_high, values: [{seed, value, eligible}]}]}.
// A row of dots for each statistic.
export function drawSeedValues(element, data, options = {}) {
  const nameOf = statisticName;
  return chart(element, { ...options,
                          height: Math.max(170, 90 + 34 * data.statistics.length) }, data, {
    paint: (now, theme) => {
      const traces = now.statistics.flatMap((statistic, row) => {
        const dots = (eligible, color) => {
          const values = statistic.values.filter((one) => one.eligible === eligible
                                                 && Number.isFinite(one.value));
          return {
            type: 'scatter', mode: 'markers', x: values.map((one) => one.value),
            y: values.map(() => row), customdata: values.map((one) => one.seed),
            marker: { color, size: 9, opacity: 0.65 }, showlegend: false,
            meta: { kind: 'seeds', label: plotlyText(nameOf(statistic)),
                    note: eligible ? '' : ' (learned too little)' },
            hovertemplate: '<b>%{meta.label}</b><br>seed %{customdata}%{meta.note}: %{x:.4f}'
                           + '<extra></extra>',
          };
        };
        return [dots(true, theme.series('claim').color), dots(false, theme.muted)];
      });
      return { traces, layout: {
        xaxis: { zeroline: false, title: { text: plotlyText(now.unit), standoff: 8 } },
        yaxis: { tickmode: 'array', tickvals: now.statistics.map((_, row) => row),
                 ticktext: now.statistics.map((one) => plotlyText(nameOf(one))),
                 range: [now.statistics.length - 0.5, -0.5] },
        shapes: now.limits.filter(Number.isFinite).map((limit) => (
          { type: 'line', x0: limit, x1: limit, yref: 'paper', y0: 0, y1: 1,
            line: { color: theme.text, width: 1, dash: '4px,3px' } })),
      } };
    },
  });
}
