// The API reference beyond HTML: a filter over its table of contents, and forms that try a call.

const filter = document.querySelector('[data-filter]');
const contents = filter && document.getElementById(filter.dataset.filter);

/** Every word must be found in the entry or in the heading above its list. */
function showMatches() {
  const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const list of contents.querySelectorAll('ul')) {
    const heading = list.previousElementSibling?.matches('.navigation-label')
      ? list.previousElementSibling
      : null;
    let shown = 0;
    for (const item of list.children) {
      const text = `${item.textContent} ${heading?.textContent ?? ''}`.toLowerCase();
      const isWanted =
        words.length === 0
          ? item.dataset.foundOnly === undefined
          : words.every((word) => text.includes(word));
      item.hidden = !isWanted;
      shown += isWanted ? 1 : 0;
    }
    if (heading) heading.hidden = words.length > 0 && shown === 0;
    found += shown;
  }
  contents.querySelector('[data-nothing-found]').hidden = words.length === 0 || found > 0;
}

const visibleLinks = () => [...contents.querySelectorAll('li:not([hidden]) a')];

filter?.addEventListener('input', showMatches);
filter?.addEventListener('keydown', (event) => {
  const [first] = visibleLinks();
  if (!first || (event.key !== 'Enter' && event.key !== 'ArrowDown')) return;
  event.preventDefault();
  if (event.key === 'Enter') first.click();
  else first.focus();
});
contents?.addEventListener('keydown', (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined) return;
  const links = visibleLinks();
  const to = links.indexOf(document.activeElement) + step;
  event.preventDefault();
  (to < 0 ? filter : links[Math.min(to, links.length - 1)])?.focus();
});

const keyInput = document.getElementById('try-key');
// Not even the browser's memory of pages keeps it.
addEventListener('pagehide', () => {
  if (keyInput) keyInput.value = '';
});

const say = (place, ...parts) => place.replaceChildren(...parts);

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** The call that the form describes; throws a sentence for the reader. */
function readCall(form) {
  const { method, path } = form.dataset;
  const headers = { authorization: `Bearer ${keyInput.value.trim()}`, accept: 'application/json' };
  const query = new URLSearchParams();
  let url = path;
  let body;
  for (const [name, text] of new FormData(form)) {
    const value = String(text).trim();
    if (value === '') continue;
    const [place, key] = name.split(/:(.*)/s);
    if (place === 'path') url = url.replace(`{${key}}`, encodeURIComponent(value));
    else if (place === 'query') query.set(key, value);
    else if (place === 'header') headers[key] = value;
    else {
      try {
        body = JSON.stringify(JSON.parse(value));
      } catch (error) {
        throw new Error(`The body is not JSON: ${error.message}`);
      }
      headers['content-type'] = 'application/json';
    }
  }
  const search = query.toString();
  return { url: search === '' ? url : `${url}?${search}`, init: { method, headers, body } };
}

async function send(form) {
  const place = form.querySelector('[data-answer]');
  if (!keyInput?.value.trim()) {
    say(place, element('p', 'Nothing was sent: paste a key at the top of the page first.', 'field-error'));
    keyInput?.focus();
    return;
  }
  let call;
  try {
    call = readCall(form);
  } catch (error) {
    say(place, element('p', error.message, 'field-error'));
    return;
  }
  const button = form.querySelector('button[type="submit"]');
  button.disabled = true;
  const started = performance.now();
  try {
    const answer = await fetch(call.url, {
      ...call.init,
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    });
    const text = await answer.text();
    const head = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const isJson = /[/+]json/.test(answer.headers.get('content-type') ?? '');
    const shown = isJson && text !== '' ? JSON.stringify(JSON.parse(text), null, 2) : text;
    const took = Math.round(performance.now() - started);
    const status = element(
      'p',
      `${answer.status} ${answer.statusText} · ${took} ms · ${call.init.method} ${call.url}`,
    );
    status.className = answer.ok ? 'try-status tone-good' : 'try-status tone-bad';
    const box = element('pre', shown);
    box.tabIndex = 0;
    const more = element('details', '');
    more.append(element('summary', 'Headers'), element('pre', head));
    say(place, status, box, more);
  } catch (error) {
    say(place, element('p', `No answer came: ${error.message}`, 'field-error'));
  } finally {
    button.disabled = false;
  }
}

document.addEventListener('submit', (event) => {
  const form = event.target instanceof Element ? event.target.closest('[data-try]') : null;
  if (!form) return;
  event.preventDefault();
  void send(form);
});
