// Changes to sweeps and jobs, if the coordinator allows them (pelab-server --http-write): logging
// in, and buttons that act like the commands. Otherwise none of this is shown.
import { make, setText } from './dom.js';
import { get } from './live.js';

let session = { writing: false, logged_in: false };

export const mayWrite = () => session.writing && session.logged_in;

export async function post(path, body = {}) {
  const response = await fetch(`/api/v1${path}`, {
    method: 'POST', body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', 'X-Pelab-Csrf': session.csrf ?? '' },
  });
  let answer = null;
  try { answer = await response.json(); } catch { /* not JSON: reported below */ }
  if (!response.ok) throw new Error(answer?.error ?? `the coordinator answered ${response.status}`);
  return answer;
}

// A dialog with fields and two buttons. `act(values)` runs on confirmation. If it throws, the error
// is shown and the dialog stays open.
function ask({ title, text, fields = [], confirm, danger = false, act }) {
  const dialog = make('dialog', 'ask');
  const form = make('form'), error = make('p', 'notice bad', '', { role: 'alert' });
  error.hidden = true;
  form.append(make('h2', '', title));
  if (text) form.append(make('p', '', text));
  const inputs = fields.map((field) => {
    const label = make('label', 'field', field.label);
    const input = make(field.long ? 'textarea' : 'input', '', undefined, field.attributes);
    input.value = field.value ?? '';
    label.append(input);
    form.append(label);
    return [field.name, input];
  });
  const buttons = make('div', 'tools');
  const no = make('button', 'tool', 'Back', { type: 'button' }),
        yes = make('button', danger ? 'tool danger' : 'tool primary', confirm, { type: 'submit' });
  buttons.append(no, yes);
  form.append(error, buttons);
  dialog.append(form);
  no.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => dialog.remove());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    yes.disabled = true;
    try {
      await act(Object.fromEntries(inputs.map(([name, input]) => [name, input.value])));
      dialog.close();
    } catch (problem) {
      setText(error, problem.message);
      error.hidden = false;
    }
    yes.disabled = false;
  });
  document.body.append(dialog);
  dialog.showModal();
  (inputs[0]?.[1] ?? no).focus();
}

function logIn() {
  ask({
    title: 'Log in', confirm: 'Log in',
    text: 'With the coordinator’s token (--http-token-file or --token-file) this browser may '
          + 'change sweeps for 12 hours.',
    fields: [{ name: 'token', label: 'Token',
               attributes: { type: 'password', autocomplete: 'current-password', required: '' } }],
    act: async ({ token }) => {
      await post('/login', { token: token.trim() });
      location.reload();
    },
  });
}

// Finds out whether this page may change anything, and shows in the header how.
export async function loadSession() {
  session = await get('/session');
  if (!session.writing) return;
  setText(document.getElementById('access'),
          session.logged_in ? 'logged in' : 'read-only until you log in');
  const button = document.getElementById('session');
  setText(button, session.logged_in ? 'Log out' : 'Log in');
  button.hidden = false;
  button.addEventListener('click', async () => {
    if (!session.logged_in) return logIn();
    await post('/logout');
    return location.reload();
  });
}

// A row of buttons, each shown only if it applies: [{text, danger, shown(row), press(row, say)}].
function controls(actions) {
  const element = make('div', 'tools controls'), said = make('p', 'notice', '', { role: 'status' });
  said.hidden = true;
  let row = null;
  const say = (text, bad = false) => {
    setText(said, text);
    said.className = bad ? 'notice bad' : 'notice';
    said.hidden = !text;
  };
  const buttons = actions.map((action) => {
    const button = make('button', action.danger ? 'tool danger' : 'tool', action.text,
                        { type: 'button' });
    button.addEventListener('click', async () => {
      say('');
      button.disabled = true;
      try { await action.press(row, say); } catch (problem) { say(problem.message, true); }
      button.disabled = false;
    });
    element.append(button);
    return [action, button];
  });
  return {
    element, said,
    update(now) {
      row = now;
      for (const [action, button] of buttons) button.hidden = !action.shown(row);
    },
  };
}

const live = (sweep) => sweep.state === 'active' || sweep.state === 'expanding';

async function retryAll(id, say) {
  let queued = 0, after = '';
  do {
    const answer = await post(`/sweeps/${id}/retry`, after ? { after } : {});
    queued += answer.queued;
    after = answer.next;
  } while (after);
  say(queued ? `${queued.toLocaleString('en-US')} failed jobs are queued again.`
        : 'No failed job needs another try.');
}

export function sweepControls() {
  return controls([
    { text: 'Pause', shown: (s) => live(s) && !s.paused, press: async (s, say) => {
      await post(`/sweeps/${s.sweep_id}/pause`);
      say('Paused: running jobs go on, no others start.');
    } },
    { text: 'Resume', shown: (s) => live(s) && s.paused,
      press: async (s, say) => { await post(`/sweeps/${s.sweep_id}/resume`); say('Resumed.'); } },
    { text: 'Retry failed', shown: (s) => s.failed > 0 && s.state !== 'cancelled',
      press: (s, say) => retryAll(s.sweep_id, say) },
    { text: 'Add seeds…', shown: (s) => s.state !== 'cancelled', press: (s, say) => ask({
      title: `Add seeds to ${s.name}`, text: 'Seeds that it has are not trained again.',
      confirm: 'Add',
      fields: [{ name: 'seeds', label: 'Seeds',
                 attributes: { placeholder: '5..9', required: '' } }],
      act: async ({ seeds }) => {
        const answer = await post(`/sweeps/${s.sweep_id}/extend`, { seeds });
        say(answer.new_seeds
              ? `Seeds ${answer.new_seeds}: ${answer.cells.toLocaleString('en-US')} jobs more.`
              : 'It has these seeds already.');
      },
    }) },
    { text: 'Priority…', shown: live, press: (s, say) => ask({
      title: `Priority of ${s.name}`, text: 'Higher goes first; -1000 to 1000.', confirm: 'Set',
      fields: [{ name: 'priority', label: 'Priority', value: String(s.priority), attributes: {
        type: 'number', min: '-1000', max: '1000', step: '1', required: ''
      } }],
      act: async ({ priority }) => {
        await post(`/sweeps/${s.sweep_id}/priority`, { priority: Number(priority) });
        say(`Priority ${Number(priority)}.`);
      },
    }) },
    { text: 'Note…', shown: () => true, press: (s, say) => ask({
      title: `Note on ${s.name}`, confirm: 'Save', text: 'For people; an empty one removes it.',
      fields: [{ name: 'note', label: 'Note', value: s.note ?? '', long: true,
                 attributes: { rows: '4', maxlength: '4096' } }],
      act: async ({ note }) => {
        await post(`/sweeps/${s.sweep_id}/note`, { note });
        say('Saved.');
      },
    }) },
    { text: 'Cancel…', danger: true, shown: live, press: (s, say) => ask({
      title: `Cancel ${s.name}?`, danger: true, confirm: 'Cancel the sweep',
      text: `${s.queued.toLocaleString('en-US')} queued and `
            + `${(s.running + s.assigned).toLocaleString('en-US')} running jobs end, unless `
            + 'another sweep has them too. What is stored stays.',
      act: async () => {
        const answer = await post(`/sweeps/${s.sweep_id}/cancel`);
        say(`Cancelled: ${answer.jobs_cancelled.toLocaleString('en-US')} jobs `
            + `ended${answer.more ? ', more are being ended' : ''}.`);
      },
    }) },
  ]);
}

export function jobControls() {
  const open = (job) => ['queued', 'assigned', 'running'].includes(job.state);
  return controls([
    { text: 'Retry', shown: (job) => ['failed', 'cancelled'].includes(job.state),
      press: async (job, say) => {
        const answer = await post(`/jobs/${job.job_id}/retry`);
        say(answer.queued ? 'It is queued again.' : 'It needs no other try.');
      } },
    { text: 'Cancel…', danger: true, shown: open, press: (job, say) => ask({
      title: `Cancel job ${job.job_id}?`, danger: true, confirm: 'Cancel the job',
      text: 'Every sweep that has it goes on without it. Its stored epochs stay.',
      act: async () => { await post(`/jobs/${job.job_id}/cancel`); say('Cancelled.'); },
    }) },
  ]);
}
