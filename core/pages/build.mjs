// node build.mjs NPM_DIR DIST: writes the files that core/pages/CMakeLists.txt embeds into DIST.
// NPM_DIR contains the packages.
import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [npmDir, dist] = process.argv.slice(2);
const fromNpm = createRequire(join(npmDir, 'package.json'));
const esbuild = fromNpm('esbuild');

const PLOTLY = 'plotly.js-cartesian-dist-min';
const plotlyDir = join(npmDir, 'node_modules', PLOTLY);

// An asset may be put in a <script> element, which these strings would end or change.
function write(name, text) {
  for (const forbidden of ['</script', '<!--']) {
    if (text.toLowerCase().includes(forbidden)) throw new Error(`${name} has "${forbidden}" in it`);
  }
  writeFileSync(join(dist, name), text);
}

// `globalName` is the page's name for the object with the module's exports.
async function bundle(name, entry, globalName) {
  const made = await esbuild.build({
    entryPoints: [join(here, entry)], bundle: true, format: 'iife', globalName, write: false,
    target: 'es2020',
    charset: 'ascii', logLevel: 'warning',
  });
  write(name, made.outputFiles[0].text);
}

mkdirSync(dist, { recursive: true });
const { version } = JSON.parse(readFileSync(join(plotlyDir, 'package.json'), 'utf8'));
const licence = readFileSync(join(plotlyDir, 'LICENSE'), 'utf8').trim();
write('plotly.js', readFileSync(join(plotlyDir, 'plotly-cartesian.min.js'), 'utf8'));
write('licences.txt', `This page contains plotly.js ${version} (${PLOTLY}).\n\n${licence}\n`);
// base.css, after the colors of looks.json as custom properties (--series-0 …) and after the dark
// colors for readers whose system is dark.
const looks = readFileSync(join(here, 'style/looks.json'), 'utf8');
const base = readFileSync(join(here, 'style/base.css'), 'utf8');
const colors = (theme) =>
  JSON.parse(looks)[theme].map((color, slot) => `--series-${slot}:${color};`).join('');
const [, dark] = base.match(/:root\[data-theme="dark"\] \{([^}]*)\}/);
write('looks.json', looks);
const inDark = colors('dark'), systemIsDark = '@media (prefers-color-scheme: dark)';
write('base.css', `:root{${colors('light')}}\n:root[data-theme="dark"]{${inDark}}\n` +
  `${systemIsDark}{:root:not([data-theme="light"]){${inDark}${dark}}}\n${base}`);
write('report.css', readFileSync(join(here, 'style/report.css'), 'utf8'));
for (const name of ['dashboard.css', 'icon.svg'])
  write(name, readFileSync(join(here, 'dashboard', name), 'utf8'));
writeFileSync(join(dist, 'dashboard.html'), readFileSync(join(here, 'dashboard/dashboard.html')));
await bundle('charts.js', 'charts/index.js', 'pelabCharts');
await bundle('report.js', 'report/main.js', 'pelabReport');
await bundle('dashboard.js', 'dashboard/main.js', 'pelabDashboard');
