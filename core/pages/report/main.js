// The report: reads its data from the page and builds the sections.
import { charts, data, drawAll, keyOf, paragraph } from './page.js';
import { comparisonsSection } from './comparisons.js';
import { curvesSection } from './curves.js';
import { depositsSection, headCountLooks, headCountsSection, headsSection,
         layersSection } from './heads.js';
import { lackingSection, resultsSection, splitsSection } from './results.js';
import { methodsSection, provenanceSection, time } from './provenance.js';
import { setUpSection } from './set_up.js';
import { sheetsSection } from './sheets.js';

const { make, registerLooks } = globalThis.pelabCharts;

function header() {
  const made = make('header', 'report-head');
  made.append(make('p', 'overline', 'pelab report'),
              make('h1', '', data.sweeps.map((sweep) => sweep.name).join(', ')));
  made.append(paragraph(`Made ${time(data.made_at_ms)} by pelab ${data.pelab}`));
  const all = data.cells.reduce((sum, cell) => sum + cell.jobs.length, 0);
  const done = all - data.lacking.length;
  const facts = make('dl', 'facts');
  const fact = (name, value) => {
    const one = make('div');
    one.append(make('dt', '', name), make('dd', '', value));
    facts.append(one);
  };
  const seeds = new Set(data.cells.flatMap((cell) => cell.jobs.map((job) => job.seed)));
  fact('jobs done', `${done} of ${all}`);
  fact('cells', data.cells.length);
  fact('seeds', seeds.size);
  fact('encodings', new Set(data.cells.map((cell) => cell.pe_label)).size);
  fact('tasks', new Set(data.cells.map((cell) => cell.task)).size);
  made.append(facts);
  if (done < all) {
    const notice = make('p', 'notice', `${all - done} of ${all} jobs have no result. Means are `
                                       + 'over the seeds that are there; ');
    notice.append(make('a', '', 'which are missing, and why', { href: '#lacking' }), '.');
    made.append(notice);
  }
  return made;
}

function navigation(sections) {
  const made = make('nav', 'contents', undefined, { 'aria-label': 'Contents' });
  for (const part of sections)
    made.append(make('a', '', part.querySelector('h2').textContent, { href: `#${part.id}` }));
  return made;
}

const root = document.getElementById('report');
registerLooks([...data.cells.map((cell) => ({ key: keyOf(cell), encoding: cell.pe, axis: cell.axis,
                                              own: cell.own })), ...headCountLooks]);
const sections = [resultsSection(), splitsSection(), comparisonsSection(), sheetsSection(),
                  setUpSection(), curvesSection(), headCountsSection(), headsSection(),
                  layersSection(), depositsSection(), lackingSection(), provenanceSection(),
                  methodsSection()].filter((made) => made !== null);
root.replaceChildren(header(), navigation(sections), ...sections);
addEventListener('beforeprint', drawAll);

export { charts, data, drawAll };
