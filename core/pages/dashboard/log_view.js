// The end of a log. It grows at the bottom; old lines at the top are dropped.
import { make, setText, visible } from './dom.js';
import { get } from './live.js';

const MOST_LINES = 2000;

export class LogView {
  constructor(job) {
    this.job = job;
    this.attempt = 0;
    this.next = null;
    this.rest = '';  // the last line, not terminated yet
    this.lines = 0;
    this.element = make('div');
    this.box = make('pre', 'log', undefined, { tabindex: '0', 'aria-label': 'Log' });
    this.state = make('p', 'muted small');
    this.last = make('span');
    this.box.append(this.last);
    this.box.hidden = true;
    this.element.append(this.state, this.box);
    setText(this.state, 'Nothing was logged.');
  }

  // One fetch at a time; a request during a fetch causes another one after it.
  async more() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    try {
      do {
        this.again = false;
        await this.fetch();
      } while (this.again);
    } catch (error) {
      setText(this.state, error.message);
    } finally {
      this.busy = false;
    }
  }

  async fetch() {
    const from = this.next === null ? '' : `&offset=${this.next}`;
    const answer = await get(`/jobs/${this.job}/log?attempt=${this.attempt}${from}`);
    for (const part of answer.parts) {
      if (this.next !== null && part.offset > this.next)
        this.add(`\n[${part.offset - this.next} bytes were not kept]\n`);
      else if (this.next === null && part.offset > 0)
        this.add(`[the first ${part.offset} bytes are not shown]\n`);
      this.add(part.text);
    }
    this.box.hidden = !this.lines && !this.rest;
    this.next = answer.next_offset;
    setText(this.state, this.lines || this.rest
      ? `attempt ${answer.attempt ?? this.attempt}, ${this.next.toLocaleString('en-US')} bytes`
      : 'Nothing was logged.');
  }

  // Shows another attempt's log from its start, or continues the current one.
  follow(attempt) {
    if (attempt === this.attempt) return this.more();
    this.attempt = attempt;
    this.next = null;
    this.rest = '';
    this.lines = 0;
    this.box.hidden = true;
    this.last = make('span');
    this.box.replaceChildren(this.last);
    return this.more();
  }

  add(text) {
    const atEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 40;
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop();
    const made = lines.slice(-MOST_LINES)
      .map((line) => make('div', 'line', line.replace(/\r$/, '')));
    this.last.before(...made);
    this.lines += made.length;
    for (; this.lines > MOST_LINES; --this.lines) this.box.firstChild.remove();
    this.last.textContent = visible(this.rest);
    if (atEnd) this.box.scrollTop = this.box.scrollHeight;
  }
}
