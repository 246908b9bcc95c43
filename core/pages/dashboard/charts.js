// The charts are two megabytes, so they are loaded only when a page first needs them.
function load(src) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = src;
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${src} could not be loaded`));
    document.head.append(script);
  });
}

let loading = null;

export function loadCharts() {
  loading ??= load('/assets/plotly.js').then(() => load('/assets/charts.js'))
    .then(() => globalThis.pelabCharts);
  return loading;
}

// A chart in `place`. The first data create it, later data update it. `draw` is the name of a
// function of pelabCharts. Calls may come before the charts are loaded; the newest data are then
// drawn.
export function liveChart(place, draw, options) {
  let chart = null, newest = null, gone = false;
  return {
    async update(data) {
      newest = data;
      const charts = await loadCharts();
      if (gone) return;
      if (chart) chart.update(newest);
      else chart = charts[draw](place, newest, options);
    },
    destroy() {
      gone = true;
      chart?.destroy();
      chart = null;
    },
    get chart() { return chart; },
  };
}
