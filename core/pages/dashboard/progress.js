// The progress of a sweep: a bar of states, counts, time left.
import { make, setText } from './dom.js';
import { STATES, count, duration } from './format.js';

const ORDER = ['succeeded', 'running', 'assigned', 'queued', 'failed', 'cancelled'];

// A bar with the share of each state, updated in place.
export function stateBar() {
  const bar = make('div', 'states', undefined, { role: 'img' });
  const parts = new Map(ORDER.map((state) => [state, make('span', `part state-${state}`)]));
  bar.append(...parts.values());
  return {
    element: bar,
    update(sweep) {
      for (const [state, part] of parts) {
        part.style.flexGrow = sweep[state];
        part.hidden = !sweep[state];  // gaps appear only between visible parts
      }
      bar.setAttribute('aria-label', countsText(sweep));
    },
  };
}

export function countsText(sweep) {
  const there = ORDER.filter((state) => sweep[state] > 0)
    .map((state) => `${sweep[state]} ${STATES[state].text}`);
  return there.length ? there.join(', ') : 'no jobs yet';
}

export function timeLeft(sweep) {
  const { time_left_seconds: seconds, ended, jobs } = sweep.progress;
  if (jobs > 0 && ended === jobs) return sweep.state === 'cancelled' ? 'cancelled' : 'done';
  return seconds === null ? 'time left unknown' : `about ${duration(seconds)} left`;
}

// "✓ 120 succeeded" for each state, as chips.
export function stateCounts() {
  const list = make('ul', 'counts');
  const items = new Map(ORDER.map((state) => {
    const item = make('li', `chip state-${state}`);
    item.append(make('span', 'glyph', STATES[state].glyph, { 'aria-hidden': 'true' }),
                make('b', 'figure', '0'), make('span', '', STATES[state].text));
    list.append(item);
    return [state, item];
  }));
  return {
    element: list,
    update(sweep) {
      for (const [state, item] of items) {
        setText(item.children[1], Number(sweep[state]).toLocaleString('en-US'));
        item.hidden = sweep[state] === 0;
      }
    },
  };
}

export function sweepState(sweep) {
  if (sweep.paused && sweep.state === 'active') return 'paused';
  return sweep.state;
}

export function jobsText(sweep) {
  const { jobs, ended } = sweep.progress;
  return `${ended.toLocaleString('en-US')} of ${count(jobs, 'job')} ended`;
}
