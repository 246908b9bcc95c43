// A table of results that can be sorted by its columns. All content is set as text.
import { make } from './figure.js';
import { interval, number, percent, points, visible } from './text.js';

const LONG = 28;  // texts with more characters get a line of their own in a narrow window

const VERDICTS = {
  holds: ['✓', 'good'], fails: ['✗', 'bad'], undecided: ['?', 'open'],
  'not eligible': ['–', 'none'],
};

function intervalCell(value) {
  const made = make('span', 'interval', interval(value?.mean, value?.half_width, 1));
  const lacking = (value?.missing ?? 0) + (value?.failed ?? 0) + (value?.cancelled ?? 0);
  if (lacking > 0 || value?.n < value?.of) made.classList.add('incomplete');
  return made;
}

const halfPoints = (half) => (100 * half).toFixed(1);

function withHalf(value, meanText, halfText) {
  if (value?.mean === null || value?.mean === undefined) return '–';
  const half = value.half_width;
  return meanText(value.mean) + (Number.isFinite(half) ? `\u2009±\u2009${halfText(half)}` : '');
}

const KINDS = {
  text: (value) => make('bdi', '', value ?? '–'),
  code: (value) => make('code', '', value ?? '–'),
  number: (value) => make('span', 'figure', number(value, 4)),
  count: (value) => make('span', 'figure', value ?? '–'),
  percent: (value) => make('span', 'figure', percent(value)),
  points: (value) => make('span', 'figure', points(value)),
  interval: intervalCell,
  // For differences, in points; `mean` is the same for plain numbers.
  points_interval: (value) => make('span', 'interval', withHalf(value, points, halfPoints)),
  mean: (value) => make('span', 'interval', withHalf(value, number, (half) => number(half, 2))),
  verdict: (value) => {
    const [mark, tone] = VERDICTS[value] ?? ['–', 'none'];
    const made = make('span', `verdict ${tone}`);
    made.append(make('span', '', mark, { 'aria-hidden': 'true' }),
                ` ${visible(value ?? 'not judged')}`);
    return made;
  },
  words: (value) => make('bdi', '', value?.text ?? '–'),
  note: (value) => make('span', value?.warning ? 'warning' : 'muted', value?.text ?? ''),
};

function sortValue(value) {
  if (value !== null && typeof value === 'object') return value.mean ?? value.text ?? null;
  return value ?? null;
}

function compare(a, b) {
  if (a === null || b === null) return (a === null) - (b === null);
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}

// data: {columns: [{key, label, kind, title?}], rows: [{…}]}. kind: text, code, number, count,
// percent, points, interval ({mean, half_width, n, of, missing, failed, cancelled}),
// points_interval and mean (the same for differences and for plain numbers), verdict ("holds",
// "fails", "undecided" …), words ({text, mean}: the text, sorted by the mean), note ({text,
// warning}). options: title, label (for screen readers; used if the page has the heading),
// description, sortable (default true), onRow (called with the chosen row).
export function drawTable(element, data, options = {}) {
  const { sortable = true, onRow } = options;
  const root = make('div', 'table-block');
  if (options.title) root.append(make('h3', 'chart-title', options.title));
  if (options.description) root.append(make('p', 'chart-description', options.description));
  const scroll = make('div', 'table-scroll', undefined, {
    tabindex: '0', role: 'region', 'aria-label': visible(options.label ?? options.title ?? 'Table')
  });
  const table = make('table');
  scroll.append(table);
  root.append(scroll);
  element.replaceChildren(root);
  let current = data, sort = { key: null, down: false };

  const order = (key) => {
    sort = { key, down: sort.key === key ? !sort.down : false };
    draw();
    [...table.querySelectorAll('thead button')].find((button) => button.dataset.key === key)
      ?.focus();
  };
  const head = (column) => {
    const made = make('th', `kind-${column.kind}`, undefined, { scope: 'col' });
    if (column.title) made.title = visible(column.title);
    if (!sortable) { made.textContent = visible(column.label); return made; }
    const button = make('button', 'sort', column.label, { type: 'button' });
    button.dataset.key = column.key;
    made.setAttribute('aria-sort',
                      sort.key !== column.key ? 'none' : sort.down ? 'descending' : 'ascending');
    button.addEventListener('click', () => order(column.key));
    made.append(button);
    return made;
  };
  const line = (row) => {
    const made = make('tr');
    for (const column of current.columns) {
      const cell = make('td', `kind-${column.kind}`);
      cell.append((KINDS[column.kind] ?? KINDS.text)(row[column.key], row));
      cell.dataset.label = visible(column.label);  // shown beside the cell in a narrow window
      if (cell.textContent.length > LONG) cell.classList.add('long');
      made.append(cell);
    }
    if (onRow) {
      made.tabIndex = 0;
      made.classList.add('choice');
      made.addEventListener('click', () => onRow(row));
      made.addEventListener('keydown', (event) => { if (event.key === 'Enter') onRow(row); });
    }
    return made;
  };
  const draw = () => {
    const rows = [...current.rows];
    if (sort.key !== null) {
      rows.sort((a, b) => {
        const x = sortValue(a[sort.key]), y = sortValue(b[sort.key]);
        return x === null || y === null ? compare(x, y) : sort.down ? compare(y, x) : compare(x, y);
      });
    }
    const top = make('tr');
    top.append(...current.columns.map(head));
    const thead = make('thead'), tbody = make('tbody');
    thead.append(top);
    tbody.append(...rows.map(line));
    table.replaceChildren(thead, tbody);
  };
  const update = (next) => { current = next; draw(); };
  update(data);
  return { update, destroy: () => root.remove(), get data() { return current; } };
}
