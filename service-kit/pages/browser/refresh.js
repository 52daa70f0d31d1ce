// Lists and marked parts renew themselves: one request for all parts of one address, none while the page is hidden.
// What is equal is not touched; what differs is changed in place, so focus, scrolling and open rows stay. Nothing is
// changed under a person who types, selects or has a drawer open. Errors are asked again later and later.

const longestWait = 300_000;
/** What scripts and readers set on elements; a refresh leaves it. */
const ownAttributes = new Set(['open', 'tabindex', 'data-htmx-powered']);
/** By address: `{ etag, texts, okAt, dueAt, failures, isBusy, isOver }`. */
const sources = new Map();
const startedAt = performance.now();
let isLeaving = false;

const here = () => location.pathname + location.search;

/** Lists by name and place among their likes; marked parts by id. */
function partsOf(root) {
  const parts = [];
  const counts = new Map();
  for (const element of root.querySelectorAll('[data-refresh]')) {
    if (element.parentElement?.closest('[data-refresh]')) continue;
    const name = element.id || element.dataset.list;
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    parts.push({ element, key: `${name} ${count}`, url: element.dataset.url });
  }
  return parts;
}

/** The same text for the same content: tokens are masked anew each time, and ages grow by themselves. */
const plain = (element) =>
  element.outerHTML
    .replace(/(name="csrf_token" value=")[^"]*/g, '$1')
    .replace(/ data-now="\d+"([^>]*)>[^<]*</g, '$1><');

/** Read before other scripts change anything. */
const firstTexts = new Map(partsOf(document).map(({ element, key }) => [key, plain(element)]));

/** The addresses that the page is made of: marked parts say how often, else the slowest list does. */
function wanted() {
  const found = new Map();
  for (const { element, key, url } of partsOf(document)) {
    const seconds = Number(element.dataset.refresh);
    if (seconds <= 0) continue;
    const one = found.get(url ?? here()) ?? { parts: new Map(), marked: [], lists: [] };
    found.set(url ?? here(), one);
    one.parts.set(key, element);
    (url === undefined ? one.lists : one.marked).push(seconds);
  }
  return found;
}

const waitOf = ({ marked, lists }) => 1000 * (marked.length > 0 ? Math.min(...marked) : Math.max(...lists));

function isChanged(control) {
  if (control.type === 'checkbox' || control.type === 'radio')
    return control.checked !== control.defaultChecked;
  if (control instanceof HTMLSelectElement)
    return (
      control.selectedIndex !==
      Math.max(
        0,
        [...control.options].findIndex((one) => one.defaultSelected),
      )
    );
  return control.value !== control.defaultValue;
}
const hasInput = (root) => [...root.querySelectorAll('input, select, textarea')].some(isChanged);

/** The reader is in the middle of something. */
function isHeld(element) {
  const chosen = getSelection();
  return (
    hasInput(element) ||
    element.querySelector('[popover]:popover-open') !== null ||
    (chosen !== null && !chosen.isCollapsed && element.contains(chosen.anchorNode))
  );
}

const keyOf = (node) => node.dataset?.key ?? (node.id || undefined);

function morph(old, fresh) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  // A chart reads its new data itself.
  if (old.hasAttribute('hx-morph-skip') || old.isEqualNode(fresh)) return;
  for (const { name } of [...old.attributes])
    if (!fresh.hasAttribute(name) && !ownAttributes.has(name)) old.removeAttribute(name);
  for (const { name, value } of fresh.attributes)
    if (old.getAttribute(name) !== value && !ownAttributes.has(name)) old.setAttribute(name, value);
  morphChildren(old, fresh);
  if ('defaultValue' in old && old.type !== 'checkbox' && old.type !== 'radio') old.value = fresh.value;
}

function morphChildren(old, fresh) {
  const keys = new Set([...fresh.children].map(keyOf));
  const known = new Map();
  for (const child of [...old.children]) {
    const key = keyOf(child);
    if (key === undefined) continue;
    if (keys.has(key) && !known.has(key)) known.set(key, child);
    else child.remove();
  }
  let at = old.firstChild;
  for (const want of [...fresh.childNodes]) {
    const key = keyOf(want);
    // Elements without a key that have no counterpart make room.
    if (key === undefined)
      while (at && keyOf(at) === undefined && at.nodeName !== want.nodeName) {
        const next = at.nextSibling;
        at.remove();
        at = next;
      }
    const match = key === undefined ? (at && keyOf(at) === undefined ? at : undefined) : known.get(key);
    if (match?.nodeName !== want.nodeName) {
      old.insertBefore(document.importNode(want, true), at);
      continue;
    }
    if (match === at) at = at.nextSibling;
    else if (old.moveBefore) old.moveBefore(match, at);
    else old.insertBefore(match, at);
    morph(match, want);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function replace(element, fresh) {
  const focused = document.activeElement;
  const hasFocus = element.contains(focused);
  const box = hasFocus ? focused.closest('.table-scroll') : null;
  morph(element, fresh);
  if (!hasFocus || document.activeElement === focused) return;
  if (focused.isConnected) focused.focus({ preventScroll: true });
  else if (box?.isConnected) box.focus({ preventScroll: true });
}

/** Returns false when something was left as it is because the reader is busy with it. */
async function show(text, parts, source) {
  const found = new Map(
    partsOf(new DOMParser().parseFromString(text, 'text/html')).map(({ element, key }) => [key, element]),
  );
  let isWhole = true;
  const changed = [];
  for (const [key, element] of parts) {
    const fresh = found.get(key);
    if (!fresh) continue;
    const now = plain(fresh);
    if (now === (source.texts.get(key) ?? firstTexts.get(key))) continue;
    if (isHeld(element)) {
      isWhole = false;
      continue;
    }
    source.texts.set(key, now);
    replace(element, fresh);
    changed.push(element);
  }
  if (changed.length > 0) {
    document.dispatchEvent(new Event('refreshed'));
    const powered = changed.filter((element) => element.querySelector('[hx-get], [hx-post]'));
    if (powered.length > 0) {
      const { default: htmx } = await import('./htmx.js');
      for (const element of powered) htmx.process(element);
    }
  }
  return isWhole;
}

/** To the sign-in page, once, and back here from there; not while something that was typed would be lost. */
function leave() {
  if (isLeaving) return;
  isLeaving = true;
  if (hasInput(document.querySelector('main') ?? document)) return;
  location.replace(here());
}
document.addEventListener('signedout', leave);

async function refresh(url, one) {
  let source = sources.get(url);
  if (!source) {
    source = { texts: new Map(), failures: 0, okAt: startedAt, dueAt: startedAt + waitOf(one) };
    sources.set(url, source);
  }
  if (source.isBusy || source.isOver || performance.now() < source.dueAt) return;
  source.isBusy = true;
  try {
    const headers = { accept: 'text/html', 'x-refresh': '1' };
    if (source.etag) headers['if-none-match'] = source.etag;
    const answer = await fetch(url, { headers });
    if (answer.status === 401) return leave();
    // A page that is gone, or one that came as the answer to a form: nothing more will come from this address.
    if (answer.status >= 400 && answer.status < 500 && answer.status !== 429) {
      source.isOver = true;
      return;
    }
    if (!answer.ok && answer.status !== 304) throw new Error(`answer ${answer.status}`);
    if (answer.redirected) return leave();
    if (answer.status !== 304) {
      source.isHeld = !(await show(await answer.text(), one.parts, source));
      source.etag = source.isHeld ? undefined : answer.headers.get('etag');
    } else source.isHeld = false;
    source.failures = 0;
    if (!source.isHeld) source.okAt = performance.now();
  } catch {
    source.failures += 1;
  } finally {
    source.isBusy = false;
    source.dueAt = performance.now() + Math.min(longestWait, waitOf(one) * 2 ** source.failures);
    tell();
  }
}

function spanText(ms) {
  const seconds = Math.round(ms / 1000);
  if (seconds < 2) return 'now';
  return seconds < 120 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
}

/** How fresh the page is, beside its search; a change of the connection is told to screen readers as well. */
function tell() {
  const place = document.querySelector('[data-freshness]');
  const asked = [...wanted().keys()].map((url) => sources.get(url)).filter((one) => one && !one.isOver);
  if (!place || asked.length === 0) return;
  const oldest = Math.min(...asked.map((one) => one.okAt));
  const isOffline = asked.some((one) => one.failures > 0);
  const span = spanText(performance.now() - oldest);
  const [state, text] = isLeaving
    ? ['out', 'Signed out. Reload to go on.']
    : isOffline
      ? ['offline', `Offline, ${span}`]
      : asked.some((one) => one.isHeld)
        ? ['held', `Waits for you, ${span}`]
        : ['', `Updated ${span}`];
  if (place.textContent !== text) place.textContent = text;
  if (place.dataset.state === state) return;
  place.dataset.state = state;
  const said = document.querySelector('[data-freshness-said]');
  if (said) said.textContent = state === 'offline' || state === 'out' ? text : '';
}

/** Asks for what is due. */
function tick() {
  if (!isLeaving && !document.hidden) for (const [url, one] of wanted()) void refresh(url, one);
  tell();
}

function hurry() {
  for (const source of sources.values()) if (source.failures > 0) source.dueAt = 0;
  tick();
}

addEventListener('online', hurry);
document.addEventListener('visibilitychange', tick);
setInterval(tick, 1000);
tick();
