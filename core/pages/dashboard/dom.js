// Small helpers. All data go through `make` of the charts, which sets text and never markup.
import { make } from '../charts/figure.js';
import { visible } from '../charts/text.js';

export { make, visible };

// Sets the text of an element only if it differs, to avoid a needless layout.
export function setText(element, text) {
  const shown = visible(text ?? '');
  if (element.textContent !== shown) element.textContent = shown;
}

export function link(href, text, className = '') {
  return make('a', className, text, { href });
}

export function card(title, ...children) {
  const made = make('section', 'card');
  if (title) made.append(make('h2', '', title));
  made.append(...children);
  return made;
}

// A table of text under these columns: {table, fill(rows)}, where a row is the texts of its cells.
// `classes` are the cells' classes.
export function textTable(columns, classes = []) {
  const table = make('table'), top = make('thead'), head = make('tr'), body = make('tbody');
  head.append(...columns.map((name) => make('th', '', name, { scope: 'col' })));
  top.append(head);
  table.append(top, body);
  const line = (texts) => {
    const made = make('tr');
    // The label is shown beside the text in a narrow window.
    made.append(...texts.map((text, i) => make(
      'td', classes[i] ?? '', text, { 'data-label': columns[i] })));
    return made;
  };
  return { table, fill: (rows) => body.replaceChildren(...rows.map(line)) };
}

// A sentence that says why something is absent.
export function empty(text) {
  return make('p', 'empty', text);
}

export function select(label, options, chosen, onChange) {
  const made = make('label', 'choice', label);
  const list = make('select');
  for (const { value, text } of options) {
    const option = make('option', '', text);
    option.value = value;
    list.append(option);
  }
  list.value = chosen;
  list.addEventListener('change', () => onChange(list.value));
  made.append(list);
  return made;
}

// Calls `action` soon, and at most once in `interval` milliseconds, however often it is requested.
export function throttled(interval, action) {
  let timer = 0, last = -Infinity;
  return () => {
    if (timer) return;
    timer = setTimeout(() => {
      timer = 0;
      last = performance.now();
      action();
    }, Math.max(0, last + interval - performance.now()));
  };
}
