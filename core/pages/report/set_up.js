// The set-up: encodings, tasks, model, protocol, seeds, and the settings that vary.
import { data, details, ranges, section, table } from './page.js';

const { make } = globalThis.pelabCharts;

const short = (name) => name.replace(/^[a-z]+\./, '');
// A hash is long; its first digits are enough to tell it from others here.
const shown = (value) => (/^[0-9a-f]{64}$/.test(value) ? `${value.slice(0, 12)}\u2026` : value);
const settings = (fields) => fields
  .map(({ name, value }) => [name, value === 'seed' ? 'the job\u2019s own' : shown(value)])
  .map(([name, value]) => `${short(name)} ${value}`)
  .join(', ');
const sentence = (text) =>
  (text ? text[0].toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.') : '');

function taskText({ name, sentence: about, source, fields, varies }) {
  const made = make('li');
  const varied = varies.map((field) => `${short(field.name)} ${field.values.join(', ')}`);
  made.append(
    make('strong', '', name),
    ` \u2013 ${sentence(about)}${source ? ` (${source}.)` : ''} ${sentence(settings(fields))}`,
    varied.length ? ` Varied: ${varied.join('; ')}.` : '');
  return made;
}

function protocolText({ name, near, sentence: about, departures, cells }) {
  const made = make('li');
  const own = name === 'custom' || near !== null;
  made.append(make('strong', '', name), ` (${cells} ${cells === 1 ? 'cell' : 'cells'}) \u2013 `);
  if (!own) { made.append(sentence(about)); return made; }
  if (near === null) { made.append('its switches are not known to this version.'); return made; }
  const departed = ({ field, value, protocol_value: usual }) =>
    `${field}: ${value} (${near}: ${usual})`;
  made.append(`as ${near}, but for ${departures.map(departed).join('; ')}.`);
  return made;
}

function fieldsTable(fields, label) {
  return table({
    columns: [
      { key: 'name', label: 'field', kind: 'code' },
      { key: 'value', label: 'value', kind: 'text' },
      { key: 'default', label: 'the protocol\u2019s default', kind: 'text' },
      { key: 'help', label: 'what it is', kind: 'text' }],
    rows: fields.map((field) => ({ ...field, default: field.default ?? '' })),
  }, { label });
}

const list = (items) => {
  const made = make('ul', 'rules');
  made.append(...items);
  return made;
};

const parametersText = (counts) =>
  (counts.length === 0 ? '' : counts.length === 1 ? counts[0].toLocaleString('en')
    : `${counts[0].toLocaleString('en')} to ${counts[counts.length - 1].toLocaleString('en')}`);

function facts(setUp) {
  const made = make('dl', 'facts');
  const fact = (name, value) => {
    if (!value) return;
    const one = make('div');
    one.append(make('dt', '', name), make('dd', '', value));
    made.append(one);
  };
  const model = new Map(setUp.model.map((field) => [short(field.name), field.value]));
  for (const name of ['d_model', 'heads', 'layers', 'd_ff']) fact(name, model.get(name));
  const counts =
    [...new Set(setUp.encodings.flatMap((encoding) => encoding.parameters))].sort((a, b) => a - b);
  fact('parameters', parametersText(counts));
  fact('seeds', ranges(data.cells.flatMap((cell) => cell.jobs.map((job) => job.seed))));
  const distinct = (name) =>
    [...new Set(data.provenance.environments.map((one) => one[name]).filter(Boolean))].join(', ');
  fact('device', distinct('device_name') || distinct('device'));
  fact('LibTorch', distinct('libtorch'));
  return made;
}

// Null if there are no groups.
export function setUpSection() {
  if (!data.cells.length) return null;
  const setUp = data.set_up;
  const made = section('set-up', 'Set-up',
                       'What was trained. Everything that is not named here is the protocol\u2019s '
                       + 'default; the whole spec of each cell is at the end.');
  made.append(facts(setUp));
  made.append(make('h3', 'group', 'What varies'));
  const varies = [`encoding: ${setUp.encodings.map((encoding) => encoding.label).join(', ')}`,
    ...(setUp.tasks.length > 1 ? [`task: ${setUp.tasks.map((task) => task.name).join(', ')}`] : []),
    ...(setUp.protocols.length > 1 ? [
      `protocol: ${[...new Set(setUp.protocols.map((protocol) => protocol.name))].join(', ')}`
    ] : []),
    ...setUp.varies.map((field) => `${field.name}: ${field.values.join(', ')}`)];
  made.append(list(varies.map((line) => make('li', '', line))));
  made.append(make('h3', 'group', setUp.tasks.length > 1 ? 'Tasks' : 'Task'),
              list(setUp.tasks.map(taskText)));
  made.append(make('h3', 'group', 'Encodings'), table({
    columns: [
      { key: 'label', label: 'encoding', kind: 'text' },
      { key: 'about', label: 'what it is', kind: 'text' },
      { key: 'settings', label: 'settings', kind: 'text' },
      { key: 'parameters', label: 'parameters', kind: 'text',
        title: 'Trained numbers of the whole model' }],
    rows: setUp.encodings.map((encoding) => ({
      label: encoding.label, about: sentence(encoding.sentence),
      settings: settings(encoding.fields), parameters: parametersText(encoding.parameters),
    })),
  }, { label: 'Encodings' }));
  made.append(make('h3', 'group', 'Protocol'), list(setUp.protocols.map(protocolText)));
  made.append(details('Model', fieldsTable(setUp.model, 'Model')),
              details('Training', fieldsTable(setUp.train, 'Training')));
  return made;
}
