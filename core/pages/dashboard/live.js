// Reads responses of the API, once or as they change.
import { setText } from './dom.js';

export async function get(path) {
  const response = await fetch(`/api/v1${path}`);
  let answer = null;
  try { answer = await response.json(); } catch { /* not JSON: reported below */ }
  if (!response.ok) throw new Error(answer?.error ?? `the coordinator answered ${response.status}`);
  return answer;
}

const RETRY = [2000, 4000, 8000, 15000];  // ms; used once the browser itself no longer retries

function say(text, lost) {
  const element = document.getElementById('live');
  setText(element, text);
  element.classList.toggle('lost', lost);
}

// Calls handlers[event]({all, rows}) for the events of /api/v1`path`, as long as the page is open.
// Reconnects automatically and shows the state of the connection in the header.
export function listen(path, handlers) {
  let source = null, failures = 0, timer = 0;
  const lost = (why) => say(why ?? 'connection lost, retrying', true);
  const connect = () => {
    timer = 0;
    source = new EventSource(`/api/v1${path}`);
    source.onopen = () => { failures = 0; say('live', false); };
    source.onerror = async () => {
      lost();
      if (source.readyState !== EventSource.CLOSED || timer) return;
      // Refused with a status that the browser does not reveal: too many streams, or the resource
      // is gone.
      timer = setTimeout(connect, RETRY[Math.min(failures++, RETRY.length - 1)]);
    };
    for (const [event, handle] of Object.entries(handlers)) {
      source.addEventListener(event, (message) => handle(JSON.parse(message.data)));
    }
  };
  const leave = () => { source?.close(); clearTimeout(timer); timer = 0; };
  const back = (event) => { if (event.persisted) connect(); };
  addEventListener('pagehide', leave);
  addEventListener('pageshow', back);
  say('connecting', false);
  connect();
}
