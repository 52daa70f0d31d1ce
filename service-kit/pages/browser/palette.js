// The command palette (Ctrl-K) and the list of keys (?): one dialog, made when it is first opened.
// A combobox over a listbox: the focus stays in the field, arrows move the active option, Enter follows it.
// Pages and actions are known here; servers, addresses and customers are asked of the server, as its lists show them.
import { make, makeButton } from './elements.js';

const waitMs = 120;
const shownMax = 8;
let parts;
let asked = 0;
let timer;
/** Answers to the present text; null while they are awaited. */
let hits = [];

const lower = (text) => text.toLowerCase();
/** Every word of the question begins a word of the text. */
function fits(text, question) {
  const words = lower(text).split(/[^\p{L}\p{N}]+/u);
  return lower(question)
    .split(/\s+/)
    .every((part) => words.some((word) => word.startsWith(part)) || lower(text).includes(part));
}

function recentItems() {
  try {
    const { session, items } = JSON.parse(localStorage.getItem('recent'));
    const isOwn = session === parts.button.dataset.session;
    return isOwn ? items.filter(({ href }) => href !== location.pathname) : [];
  } catch {
    return [];
  }
}

/** Pages of the navigation, with their keys. */
const pages = () =>
  [...document.querySelectorAll('.sidebar .navigation-group > ul a')].map((link) => ({
    href: link.getAttribute('href'),
    text: link.querySelector('span').textContent,
    detail: link.dataset.go ? `g ${link.dataset.go}` : '',
  }));

/** What the present page offers in its heading, then what can be done from everywhere. */
function actions() {
  const own = [...document.querySelectorAll('.page-header .actions :is(a.button, button:not(.drawer *))')]
    .filter((control) => !control.disabled && control.textContent.trim() !== '')
    .map((control) => ({
      text: control.textContent.trim(),
      href: control.getAttribute('href'),
      detail: 'this page',
      run: () => control.click(),
    }));
  const offered = new Set(own.map(({ href }) => href));
  const everywhere = JSON.parse(document.getElementById('palette-actions')?.textContent ?? '[]');
  const themes = [...document.querySelectorAll('[data-theme-choice]')].map((control) => ({
    text: `Colours: ${control.textContent}`,
    detail: '',
    run: () => control.click(),
  }));
  const out = document.querySelector('.person form');
  return [
    ...own,
    ...everywhere
      .filter(({ href }) => !offered.has(href))
      .map(({ label, href }) => ({ text: label, href, detail: '' })),
    ...themes,
    { text: 'Show keys', detail: '?', run: () => open(parts.button, 'keys') },
    ...(out ? [{ text: 'Sign out', detail: '', run: () => out.requestSubmit() }] : []),
  ];
}

/** What stands in the list, in groups. */
function groups() {
  const question = parts.input.value.trim();
  const fitting = (items) =>
    question === '' ? items : items.filter(({ text, detail }) => fits(`${text} ${detail}`, question));
  const found = [['Recent', fitting(recentItems()).slice(0, shownMax)]];
  if (question !== '')
    for (const [kind, items] of Map.groupBy(hits ?? [], (hit) => hit.kind)) found.push([kind, items]);
  found.push(['Pages', fitting(pages())], ['Actions', fitting(actions())]);
  const form = document.querySelector('form.search');
  if (form && question !== '') {
    const url = new URL(form.action);
    url.searchParams.set(form.querySelector('input').name, question);
    const whole = { text: `All results for “${question}”`, href: url.pathname + url.search, detail: '' };
    found.push(['Search', [whole]]);
  }
  return found.filter(([, items]) => items.length > 0);
}

function option(item) {
  const text = make('span', '', item.text);
  const detail = make('span', 'hint', item.detail ?? '');
  const isPath = typeof item.href === 'string' && /^\/(?!\/)/.test(item.href);
  const element = isPath
    ? make('a', 'palette-option', text, detail)
    : makeButton('palette-option', text, detail);
  if (isPath) element.href = item.href;
  // Also for a link: it may lead to a part of this page.
  element.addEventListener('click', () => {
    parts.dialog.close();
    if (!isPath) item.run?.();
  });
  element.setAttribute('role', 'option');
  element.setAttribute('aria-selected', 'false');
  element.tabIndex = -1;
  return element;
}

const options = () => [...parts.list.querySelectorAll('[role="option"]')];
const active = () => parts.list.querySelector('[aria-selected="true"]');

function activate(element) {
  active()?.setAttribute('aria-selected', 'false');
  element?.setAttribute('aria-selected', 'true');
  element?.scrollIntoView({ block: 'nearest' });
  if (element) parts.input.setAttribute('aria-activedescendant', element.id);
  else parts.input.removeAttribute('aria-activedescendant');
}

function draw() {
  const before = active();
  const kept = before && (before.getAttribute('href') ?? before.textContent);
  let count = 0;
  const drawn = groups().map(([kind, items], at) => {
    const heading = make('p', 'palette-kind', kind);
    heading.id = `palette-kind-${at}`;
    const group = make('div', '', heading, ...items.map(option));
    group.setAttribute('role', 'group');
    group.setAttribute('aria-labelledby', heading.id);
    return group;
  });
  parts.list.replaceChildren(...drawn);
  for (const element of options()) {
    count += 1;
    element.id = `palette-option-${count}`;
  }
  const same =
    parts.hasMoved && options().find((one) => (one.getAttribute('href') ?? one.textContent) === kept);
  activate(same || options()[0]);
  const text = hits === null ? 'Searching…' : count === 0 ? 'Nothing found' : `${count} found`;
  parts.said.textContent = parts.isFailed ? 'The server does not answer; pages and actions only.' : text;
  parts.said.classList.toggle('visually-hidden', count > 0 && hits !== null && !parts.isFailed);
}

async function ask() {
  const question = parts.input.value.trim();
  asked += 1;
  const mine = asked;
  try {
    const { palette } = parts.button.dataset;
    const answer = await fetch(`${palette}?q=${encodeURIComponent(question.slice(0, 100))}`, {
      headers: { accept: 'application/json' },
    });
    if (mine !== asked) return;
    // Signed out meanwhile: to the sign-in page, and back from there.
    if (answer.redirected || answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(`answer ${answer.status}`);
    const found = await answer.json();
    if (mine !== asked) return;
    hits = found;
    parts.isFailed = false;
  } catch {
    if (mine !== asked) return;
    hits = [];
    parts.isFailed = true;
  }
  draw();
}

function onInput() {
  clearTimeout(timer);
  asked += 1;
  parts.hasMoved = false;
  const isEmpty = parts.input.value.trim() === '';
  // What fitted the text before may still fit; it is replaced at once when the answer comes.
  hits = isEmpty
    ? []
    : (hits?.filter(({ text, detail }) => fits(`${text} ${detail}`, parts.input.value)) ?? null);
  parts.isFailed = false;
  if (!isEmpty) timer = setTimeout(() => void ask(), waitMs);
  draw();
}

function onKey(event) {
  const all = options();
  const at = all.indexOf(active());
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + 8, PageUp: at - 8 }[event.key];
  if (to !== undefined) {
    event.preventDefault();
    parts.hasMoved = true;
    const isStep = event.key.startsWith('Arrow');
    const place = isStep ? (to + all.length) % all.length : Math.min(all.length - 1, Math.max(0, to));
    activate(all[place]);
  } else if (event.key === 'Enter') {
    event.preventDefault();
    active()?.click();
  }
}

const fixedKeys = [
  ['Ctrl K', 'Search servers, addresses, pages and actions'],
  ['/', 'Focus the search of the page'],
  ['?', 'Show these keys'],
  ['↑ ↓', 'Move in a table, or in what is suggested'],
  ['Enter', 'Open the row, or save what is edited'],
  ['Escape', 'Close, or leave what is edited'],
];

function keysView() {
  const places = pages().filter(({ detail }) => detail !== '');
  const lines = [...fixedKeys, ...places.map(({ detail, text }) => [detail, text])];
  const list = make('dl', 'palette-keys');
  for (const [keys, text] of lines) {
    const each = keys.split(' ').flatMap((key) => [make('kbd', '', key), ' ']);
    list.append(make('div', '', make('dt', '', ...each), make('dd', '', text)));
  }
  return list;
}

function build(button) {
  const input = make('input', '');
  Object.assign(input, { type: 'text', maxLength: 100, autocomplete: 'off', spellcheck: false });
  input.placeholder = 'Go to a page, a server or an action';
  const list = make('div', 'palette-list');
  list.id = 'palette-list';
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', 'Results');
  for (const [name, value] of Object.entries({
    role: 'combobox',
    'aria-label': input.placeholder,
    'aria-expanded': 'true',
    'aria-autocomplete': 'list',
    'aria-controls': list.id,
  }))
    input.setAttribute(name, value);
  const said = make('p', 'palette-said');
  said.setAttribute('role', 'status');
  const close = makeButton('icon-button', '×');
  close.setAttribute('aria-label', 'Close');
  const title = make('h2', '', 'Keys');
  const search = make('div', 'palette-search', input, list, said);
  const keys = make('div', 'palette-help');
  const dialog = make('dialog', 'palette', close, title, search, keys);
  document.body.append(dialog);
  close.addEventListener('click', () => dialog.close());
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  input.addEventListener('input', onInput);
  input.addEventListener('keydown', onKey);
  list.addEventListener('mousemove', (event) => {
    const over = event.target.closest('[role="option"]');
    if (over && over !== active()) activate(over);
  });
  parts = { button, dialog, input, list, said, title, search, keys, hasMoved: false, isFailed: false };
}

/** Opens the dialog with the search, for a text that was typed before, or with the keys. */
export function open(button, view, typed) {
  if (!parts) build(button);
  const isSearch = view === 'search';
  parts.search.hidden = !isSearch;
  parts.keys.hidden = isSearch;
  parts.title.hidden = isSearch;
  parts.dialog.setAttribute('aria-label', isSearch ? 'Command palette' : 'Keys');
  if (!parts.dialog.open) parts.dialog.showModal();
  if (isSearch) {
    parts.input.value = typed;
    hits = [];
    onInput();
    parts.input.focus();
  } else parts.keys.replaceChildren(keysView());
}
