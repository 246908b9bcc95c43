// A line as high as text, without axes. A redraw changes one attribute, so hundreds can be live.
const SVG = 'http://www.w3.org/2000/svg';

function pathOf(values, width, height, low, high) {
  const span = high - low || 1;
  const step = values.length > 1 ? (width - 2) / (values.length - 1) : 0;
  let path = '', pen = 'M';
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) { pen = 'M'; return; }
    path += `${pen}${(1 + i * step).toFixed(1)} `
            + `${(height - 1 - ((value - low) / span) * (height - 2)).toFixed(1)}`;
    pen = 'L';
  });
  return path;
}

// data: {values: [number | null …]}. options: label (for screen readers), width, height, low and
// high (ends of the scale; default: those of the values).
export function drawSparkline(element, data, options = {}) {
  const { width = 96, height = 22, label = '' } = options;
  const svg = document.createElementNS(SVG, 'svg');
  const attributes = { class: 'sparkline', width, height, viewBox: `0 0 ${width} ${height}`,
                       role: 'img' };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  const title = document.createElementNS(SVG, 'title');
  const line = document.createElementNS(SVG, 'path');
  svg.append(title, line);
  element.replaceChildren(svg);
  let current = data;
  const update = (next) => {
    current = next;
    const values = next.values ?? [];
    const there = values.filter(Number.isFinite);
    const low = options.low ?? Math.min(...there), high = options.high ?? Math.max(...there);
    line.setAttribute('d', there.length ? pathOf(values, width, height, low, high) : '');
    const last = there.length ? there[there.length - 1] : null;
    title.textContent = last === null ? `${label}: nothing yet`
      : `${label}: ${Number(last.toPrecision(4))} after ${there.length}`;
  };
  update(data);
  return { update, destroy: () => svg.remove(), get data() { return current; } };
}
