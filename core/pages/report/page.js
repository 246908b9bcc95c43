// Building blocks of the report's sections. `pelabCharts` must be loaded before.
const { make } = globalThis.pelabCharts;

export const data = JSON.parse(document.getElementById('report-data').textContent);

// Every chart of the page with its element, in page order; for scripts that inspect the page.
export const charts = [];

const waiting = new Map();  // element -> draw
const observer = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, { rootMargin: '800px 0px' });

function drawNow(element) {
  const draw = waiting.get(element);
  if (!draw) return;
  waiting.delete(element);
  observer.unobserve(element);
  draw();
}

// A place for a chart, which is drawn when it comes near the window: a report may have a hundred
// charts.
export function place(kind, name, draw) {
  const element = make('div', 'chart-place');
  const entry = { kind, name, element, chart: null };
  charts.push(entry);
  waiting.set(element, () => { entry.chart = draw(element); });
  observer.observe(element);
  return element;
}

export function drawAll() {
  for (const element of [...waiting.keys()]) drawNow(element);
}

export function paragraph(text, className = 'muted') {
  return make('p', className, text);
}

// Says why there is nothing here, and which command would change that.
export function empty(text, command) {
  const made = make('div', 'empty');
  made.append(make('p', '', text));
  if (command) made.append(make('code', '', command));
  return made;
}

// Intervals and tests of a fixed number of seeds, beside seeds that a claim sheet added until its
// claims were decided. Empty if no sheet did.
export function stoppingNote() {
  if (!data.sheets?.length) return '';
  return ' Such intervals and tests are for a number of seeds that was chosen beforehand. A claim '
    + 'sheet added seeds to these results until its claims were decided, so they promise more than '
    + 'they keep here; the limits under Claims hold whenever one stops.';
}

export function section(id, title, intro) {
  const made = make('section', 'card', undefined, { id, 'aria-labelledby': `${id}-title` });
  made.append(make('h2', '', title, { id: `${id}-title` }));
  if (intro) made.append(paragraph(intro));
  return made;
}

export function details(title, content, open = false) {
  const made = make('details', 'fold');
  made.open = open;
  made.append(make('summary', '', title), ...[content].flat());
  return made;
}

export function table(content, options = {}) {
  const element = make('div');
  const chart = globalThis.pelabCharts.drawTable(element, content, options);
  charts.push({ kind: 'table', name: options.label, element, chart });
  return element;
}

// [[key, items]] in the order of their first items.
export function grouped(items, keyOf) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(item);
  }
  return [...groups];
}

export const sweepName = data.sweeps[0]?.name ?? 'SWEEP';
export const cellOf = (item) => data.cells[item.cell];

// The key of a group's series, which determines color, dash and marker.
export const keyOf = (cell) => cell.short;

// [0, 1, 2, 5] as "0..2, 5".
export function ranges(numbers) {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts = [];
  for (const number of sorted) {
    const last = parts[parts.length - 1];
    if (last && last[1] + 1 === number) last[1] = number;
    else parts.push([number, number]);
  }
  const partText = ([from, to]) =>
    (from === to ? String(from) : to === from + 1 ? `${from}, ${to}` : `${from}..${to}`);
  return parts.map(partText).join(', ');
}
