// The coordinator's pages: one document that shows the page named by its address. Following a link
// loads it again.
import { loadSession } from './control.js';
import { make, setText } from './dom.js';
import { showJob } from './job_page.js';
import { showSweep } from './sweep_page.js';
import { showSweeps } from './sweeps_page.js';
import { showWorkers } from './workers_page.js';

const THEMES = ['auto', 'light', 'dark'];

function storedTheme() {
  try { return localStorage.getItem('pelab-theme') ?? 'auto'; } catch { return 'auto'; }
}

function applyTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function themeButton() {
  const button = document.getElementById('theme');
  let theme = THEMES.includes(storedTheme()) ? storedTheme() : 'auto';
  const show = () => {
    setText(button, { auto: '◐ Auto', light: '☀ Light', dark: '☾ Dark' }[theme]);
    button.setAttribute('aria-label', `Colors: ${theme}. Press to change.`);
  };
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem('pelab-theme', theme);
    } catch { /* without storage, the choice is not kept */ }
    applyTheme(theme);
    show();
  });
  show();
}

async function start() {
  themeButton();
  const main = document.getElementById('main');
  const [page, id] = location.pathname.split('/').filter(Boolean).map(decodeURIComponent);
  const nav = document.querySelector(`[data-page="${page === 'workers' ? 'workers' : 'sweeps'}"]`);
  nav.setAttribute('aria-current', 'page');
  try {
    await loadSession();
    if (page === 'sweeps') await showSweep(main, id);
    else if (page === 'jobs') await showJob(main, id);
    else if (page === 'workers') await showWorkers(main);
    else await showSweeps(main);
  } catch (error) {
    main.append(make('p', 'notice bad', error.message, { role: 'alert' }));
  }
}

applyTheme(storedTheme());
addEventListener('DOMContentLoaded', start);
