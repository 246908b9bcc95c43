// The frame of every chart drawn by Plotly: a heading, a legend whose entries are buttons, zoom and
// download by mouse, touch and keyboard, the colors of the page's theme, and the width of its
// element.
import { fileName, plotlyText, visible } from './text.js';
import { onThemeChange, styleOf, themeOf } from './theme.js';

const CONFIG = { displayModeBar: false, responsive: false, doubleClick: 'reset', showTips: false,
                 scrollZoom: false };

// Creates an element with its class, text and attributes. The text is never interpreted as markup.
export function make(tag, className, text, attributes = {}) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = visible(text);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function save(text, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type: 'image/svg+xml' }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const SVG = 'http://www.w3.org/2000/svg';

// Shapes within 8 x 8 that match Plotly's symbols of these names.
const MARKERS = {
  circle: 'M0 4a4 4 0 1 0 8 0a4 4 0 1 0 -8 0', square: 'M.5 .5h7v7h-7z',
  diamond: 'M4 -.8L8.8 4L4 8.8L-.8 4z',
  'triangle-up': 'M4 -.5L8.6 7.5H-.6z', 'triangle-down': 'M4 8.5L8.6 .5H-.6z',
  cross: 'M2.7 0h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z',
  x: 'M0 1.9L1.9 0L4 2.1L6.1 0L8 1.9L5.9 4L8 6.1L6.1 8L4 5.9L1.9 8L0 6.1L2.1 4z',
};

// A piece of the series' line, with its marker if the encoding has several variants.
function swatch(look) {
  const svg = document.createElementNS(SVG, 'svg');
  const parts = { class: 'legend-swatch', width: look.varied ? 34 : 20, height: 10,
                  'aria-hidden': 'true' };
  for (const [name, value] of Object.entries(parts)) svg.setAttribute(name, value);
  const line = document.createElementNS(SVG, 'path');
  line.setAttribute('d', `M0 5H${parts.width}`);
  line.setAttribute('stroke-dasharray', look.dash.join(' '));
  line.style.stroke = `var(${look.variable})`;
  svg.append(line);
  if (look.varied) {
    const marker = document.createElementNS(SVG, 'path');
    marker.setAttribute('d', MARKERS[look.symbol]);
    marker.setAttribute('transform', 'translate(13 1)');
    marker.style.fill = `var(${look.variable})`;
    svg.append(marker);
  }
  return svg;
}

let nextId = 0;

export class Figure {
  // options: title, description (of the content, also for screen readers), name (of the saved
  // file), height (px), left (px: the margin for the vertical axis), hidden (keys of the legend
  // that are hidden at first).
  // zoom: whether the axes can be zoomed. `paint(theme, width, hidden)` returns {traces, layout};
  // it is called again whenever the theme, the width or the hidden series change.
  constructor(element, options, { zoom, paint }) {
    this.element = element;
    this.options = { height: 380, ...options };
    this.zoom = zoom;
    this.paint = paint;
    this.hidden = new Set(options.hidden ?? []);
    this.width = 0;
    this.build();
    this.forgetTheme = onThemeChange(() => this.draw());
    this.observer = new ResizeObserver(() => this.onResize());
    this.observer.observe(this.element);
  }

  build() {
    const { title, description } = this.options;
    const id = `chart-${++nextId}`;
    this.root = make('figure', 'chart');
    this.caption = make('figcaption', 'chart-head');
    const words = make('div', 'chart-words');
    if (title) words.append(make('h3', 'chart-title', title, { id }));
    if (description)
      words.append(make('p', 'chart-description', description, { id: `${id}-about` }));
    this.tools = make('div', 'chart-tools', undefined,
                      { role: 'group', 'aria-label': visible(`Chart: ${title ?? 'controls'}`) });
    if (this.zoom) {
      this.button('+', 'Zoom in', () => this.scale(0.5));
      this.button('\u2212', 'Zoom out', () => this.scale(2));
      this.button('Reset', 'Show everything', () => this.reset());
    }
    this.button('SVG', 'Save as SVG', async () => {
      save(await this.toSvg(), `${fileName(this.options.name ?? title)}.svg`);
    });
    this.caption.append(words, this.tools);
    this.legend = make('div', 'chart-legend', undefined,
                       { role: 'group', 'aria-label': 'Shown series' });
    this.plot = make('div', 'chart-plot', undefined,
                     { role: 'img', tabindex: this.zoom ? '0' : '-1' });
    if (title) this.plot.setAttribute('aria-labelledby', id);
    if (description) this.plot.setAttribute('aria-describedby', `${id}-about`);
    this.plot.style.height = `${this.options.height}px`;
    if (this.zoom) this.plot.addEventListener('keydown', (event) => this.onKey(event));
    this.root.append(this.caption, this.legend, this.plot);
    this.element.replaceChildren(this.root);
  }

  button(text, label, action) {
    const made = make('button', 'tool', text,
                      { type: 'button', title: label, 'aria-label': label });
    made.addEventListener('click', action);
    this.tools.append(made);
    return made;
  }

  // items: {key, label, note, warning}. Pressing an entry hides or shows its series.
  setLegend(items) {
    const known = new Set(items.map((item) => item.key));
    for (const key of [...this.hidden]) if (!known.has(key)) this.hidden.delete(key);
    const focused = this.legend.contains(document.activeElement)
      ? document.activeElement.dataset.key : null;
    const buttons = items.map((item) => this.legendButton(item));
    if (items.length > 4) buttons.push(this.allButton(items));
    this.legend.replaceChildren(...buttons);
    this.legend.hidden = items.length < 2 && !items.some((item) => item.note);
    if (focused !== null) buttons.find((button) => button.dataset.key === focused)?.focus();
    this.legendItems = items;
  }

  legendButton(item) {
    const made = make('button', 'legend-item', undefined,
                      { type: 'button', 'aria-pressed': String(!this.hidden.has(item.key)) });
    made.dataset.key = item.key;
    made.append(swatch(styleOf(item.key)), make('bdi', 'legend-label', item.label));
    if (item.note)
      made.append(make('span', item.warning ? 'legend-note warning' : 'legend-note', item.note));
    made.addEventListener('click', () => this.toggle(item.key));
    return made;
  }

  allButton(items) {
    const none = items.every((item) => this.hidden.has(item.key));
    const made = make('button', 'legend-item legend-all', none ? 'Show all' : 'Hide all',
                      { type: 'button' });
    made.dataset.key = '\u0000all';
    made.addEventListener('click', () => {
      this.hidden = none ? new Set() : new Set(items.map((item) => item.key));
      this.setLegend(items);
      this.draw();
    });
    return made;
  }

  toggle(key) {
    if (!this.hidden.delete(key)) this.hidden.add(key);
    this.setLegend(this.legendItems);
    this.draw();
  }

  layout(theme, width) {
    const narrow = width < 520;
    const axis = {
      gridcolor: theme.grid, zerolinecolor: theme.grid, linecolor: theme.grid,
      tickcolor: theme.grid, automargin: true,
      title: { standoff: 8 },
    };
    return {
      width, height: this.options.height, autosize: false, showlegend: false, hovermode: 'closest',
      font: { family: theme.font, size: narrow ? 11 : 12, color: theme.text },
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      // Plotly draws a chart twice if its labels need more than these margins.
      margin: { l: this.options.left ?? (narrow ? 70 : 76), r: narrow ? 18 : 20, t: 16, b: 54 },
      hoverlabel: { bgcolor: theme.surface, bordercolor: theme.muted,
                    font: { color: theme.text, family: theme.font, size: 12 }, namelength: -1 },
      // A finger on a chart scrolls the page; the buttons zoom.
      dragmode: this.zoom && !matchMedia('(pointer: coarse)').matches ? 'zoom' : false,
      uirevision: 'kept',  // keeps the zoom when data change
      xaxis: { ...axis, fixedrange: !this.zoom }, yaxis: { ...axis, fixedrange: !this.zoom },
    };
  }

  painted(theme, width) {
    const { traces, layout } = this.paint(theme, width, this.hidden);
    const whole = this.layout(theme, width);
    for (const [name, value] of Object.entries(layout ?? {})) {
      whole[name] = /^[xy]axis/.test(name) ? { ...whole[name.slice(0, 5)], ...value } : value;
    }
    return { traces, layout: whole };
  }

  draw() {
    if (this.destroyed) return;
    this.width = Math.floor(this.plot.clientWidth) || 600;
    const { traces, layout } = this.painted(themeOf(this.element), this.width);
    this.plot.style.height = `${layout.height}px`;
    globalThis.Plotly.react(this.plot, traces, layout, CONFIG);
  }

  onResize() {
    if (Math.floor(this.plot.clientWidth) === this.width || this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (Math.floor(this.plot.clientWidth) !== this.width) this.draw();
    });
  }

  axes() {
    return Object.keys(this.plot._fullLayout ?? {}).filter((name) => /^[xy]axis\d*$/.test(name));
  }

  // Zooms both axes about their middle.
  scale(factor) {
    const change = {};
    for (const name of this.axes()) {
      const [from, to] = this.plot._fullLayout[name].range;
      const middle = (from + to) / 2;
      change[`${name}.range`] = [middle - (middle - from) * factor,
                                 middle + (to - middle) * factor];
    }
    globalThis.Plotly.relayout(this.plot, change);
  }

  move(letter, share) {
    const name = `${letter}axis`;
    const [from, to] = this.plot._fullLayout[name].range;
    const by = (to - from) * share;
    globalThis.Plotly.relayout(this.plot, { [`${name}.range`]: [from + by, to + by] });
  }

  reset() {
    const change = {};
    for (const name of this.axes()) change[`${name}.autorange`] =
      this.plot._fullLayout[name].autorange === 'reversed' ? 'reversed' : true;
    globalThis.Plotly.relayout(this.plot, change);
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      '+': () => this.scale(0.5), '=': () => this.scale(0.5), '-': () => this.scale(2),
      '0': () => this.reset(), Escape: () => this.reset(),
      ArrowLeft: () => this.move('x', -0.2), ArrowRight: () => this.move('x', 0.2),
      ArrowUp: () => this.move('y', 0.2), ArrowDown: () => this.move('y', -0.2),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // The current chart with its title and legend, as SVG text.
  async toSvg() {
    const theme = themeOf(this.element);
    const width = Math.max(this.width, 720);
    const { traces, layout } = this.painted(theme, width);
    const height = layout.height + 60;
    Object.assign(layout, {
      height, showlegend: (this.legendItems ?? []).length > 1, paper_bgcolor: theme.surface,
      title: { text: plotlyText(this.options.title ?? ''), x: 0, xref: 'paper',
               font: { size: 15 } },
      legend: { font: { color: theme.text } }, margin: { ...layout.margin, t: 60 },
    });
    const url = await globalThis.Plotly.toImage({ data: traces, layout, config: CONFIG },
                                                { format: 'svg', width, height });
    return decodeURIComponent(url.slice(url.indexOf(',') + 1));
  }

  destroy() {
    this.destroyed = true;
    this.forgetTheme();
    this.observer.disconnect();
    if (this.waiting) cancelAnimationFrame(this.waiting);
    globalThis.Plotly.purge(this.plot);
    this.root.remove();
  }
}

// The object that the draw… functions return. `legend(data)` returns the legend's items; `paint`
// draws the newest data.
export function chart(element, options, data, { zoom = true, legend, paint }) {
  let current = data;
  const figure = new Figure(element, options, {
    zoom, paint: (theme, width, hidden) => paint(current, theme, width, hidden)
  });
  const update = (next) => {
    current = next;
    figure.setLegend(legend ? legend(next) : []);
    figure.draw();
  };
  update(data);
  return { update, destroy: () => figure.destroy(), toSvg: () => figure.toSvg(),
           get data() { return current; }, figure };
}
