// What pages do beyond HTML: theme switch, keyboard, copy buttons, confirmations, toasts, ages that grow.
// Everything listens at the document, so parts that are fetched later need no set-up.
import './refresh.js';

const root = document.documentElement;

/** Theme switch: "system" leaves the choice to the browser. */
function showTheme() {
  for (const button of document.querySelectorAll('[data-theme-choice]')) {
    button.setAttribute(
      'aria-pressed',
      String(button.dataset.themeChoice === (root.dataset.theme ?? 'system')),
    );
  }
}

function chooseTheme(choice) {
  if (choice === 'system') delete root.dataset.theme;
  else root.dataset.theme = choice;
  try {
    if (choice === 'system') localStorage.removeItem('theme');
    else localStorage.setItem('theme', choice);
  } catch {
    // The choice then holds for this page only.
  }
  showTheme();
  document.dispatchEvent(new Event('themechange'));
}

async function copy(button) {
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = 'Copied';
    button.classList.add('is-done');
  } catch {
    button.textContent = 'Select and copy';
  }
  setTimeout(() => {
    button.textContent = label;
    button.classList.remove('is-done');
  }, 1500);
}

/** An address can name a drawer of the page: it opens. */
function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (!named?.matches('[popover]:not(:popover-open)')) return;
  named.showPopover();
  named.querySelector('button')?.focus();
}
openNamed();
addEventListener('hashchange', openNamed);

/** Of tabs that are wider than a phone, the one that is shown is in sight. */
for (const current of document.querySelectorAll('.tabs > [aria-current], .segments > [aria-current]')) {
  const bar = current.parentElement;
  const over = current.offsetLeft + current.offsetWidth - bar.offsetLeft - bar.clientWidth;
  if (over > 0) bar.scrollLeft = over + 16;
}

/**
 * Back from a refused form, the browser fills it as it was sent: the drawer that it stands in opens. A form of a range holds the time
 * of its page, which has moved since, and says nothing.
 */
const isFilled = (field) => !['hidden', 'search'].includes(field.type) && field.value !== field.defaultValue;
addEventListener('pageshow', () => {
  if (performance.getEntriesByType('navigation')[0]?.type !== 'back_forward') return;
  const fields = [...document.querySelectorAll('[popover] form[method="post"] :is(input, textarea)')];
  fields.find(isFilled)?.closest('[popover]:not(:popover-open)')?.showPopover();
});
for (const button of document.querySelectorAll('[data-back]')) button.hidden = history.length < 2;

/** The palette is loaded when it is first opened; what is typed until then is its text. */
const paletteButton = document.querySelector('[data-palette]');
let typedEarly = null;
async function openPalette(view) {
  if (typedEarly !== null) return;
  typedEarly = '';
  try {
    const { open } = await import('./palette.js');
    open(paletteButton, view, typedEarly);
  } finally {
    typedEarly = null;
  }
}

/** Pages that were visited in this session, the last first; what another session has left is dropped. */
function noteVisit() {
  try {
    const session = paletteButton?.dataset.session;
    if (document.querySelector('[data-signed-out]')) localStorage.removeItem('recent');
    if (!session) return;
    const kept = JSON.parse(localStorage.getItem('recent') ?? 'null');
    const items = kept?.session === session ? kept.items : [];
    const href = location.pathname;
    const crumbs = [...document.querySelectorAll('.breadcrumb li')].map((crumb) => crumb.textContent);
    const isPlace = [...document.querySelectorAll('.sidebar a')].some((link) => link.pathname === href);
    const isShown = (performance.getEntriesByType('navigation')[0]?.responseStatus ?? 200) < 400;
    const text = crumbs.at(-1);
    if (!isPlace && isShown && text) items.unshift({ href, text, detail: crumbs.at(-2) ?? '' });
    const found = items.filter((one, at) => items.findIndex(({ href }) => href === one.href) === at);
    localStorage.setItem('recent', JSON.stringify({ session, items: found.slice(0, 8) }));
  } catch {
    // Without storage nothing is recent.
  }
}
noteVisit();
document.addEventListener('submit', (event) => {
  if (event.target.matches('.person form')) localStorage.removeItem('recent');
});

document.addEventListener('click', (event) => {
  const button = event.target instanceof Element ? event.target.closest('button') : null;
  if (!button) return;
  if (button === paletteButton) return void openPalette('search');
  if (button.dataset.themeChoice) chooseTheme(button.dataset.themeChoice);
  else if (button.dataset.copy !== undefined) void copy(button);
  else if (button.dataset.back !== undefined) history.back();
  else if (button.dataset.close !== undefined) button.closest('.toast')?.remove();
});

/** The button of a confirmation stays shut until the name fits. */
function checkConfirm(box) {
  const typed = box.querySelector('input[type="text"]')?.value.trim();
  const button = box.querySelector('button[type="submit"]');
  if (button) button.disabled = typed !== box.dataset.confirm.trim();
}

document.addEventListener('input', (event) => {
  const box = event.target instanceof Element ? event.target.closest('[data-confirm]') : null;
  if (box) checkConfirm(box);
});

/** `/` goes to the search, `g` and a letter to a place, arrows through the rows of a table. */
let goUntil = 0;

function isTyping(target) {
  return target instanceof Element && target.matches('input, select, textarea, [contenteditable]');
}

function expectGo(isExpected) {
  goUntil = isExpected ? performance.now() + 1500 : 0;
  root.classList.toggle('shows-keys', isExpected);
  if (isExpected) setTimeout(() => performance.now() >= goUntil && root.classList.remove('shows-keys'), 1550);
}

document.addEventListener('keydown', (event) => {
  const isPaletteKey = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
  if (paletteButton && isPaletteKey && event.key.toLowerCase() === 'k' && !event.defaultPrevented) {
    event.preventDefault();
    return void openPalette('search');
  }
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typedEarly !== null && event.key.length === 1) {
    event.preventDefault();
    typedEarly += event.key;
    return;
  }
  if (
    event.key === 'Escape' &&
    event.target instanceof HTMLElement &&
    event.target.matches('[data-search]')
  ) {
    event.target.blur();
    return;
  }
  if (event.key === 'Escape') return cancelRow(event);
  if (moveInSuggestions(event)) return;
  if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
  if (performance.now() < goUntil) {
    const place = document.querySelector(`[data-go="${CSS.escape(event.key.toLowerCase())}"]`);
    expectGo(false);
    if (place) {
      event.preventDefault();
      place.click();
    }
    return;
  }
  if (event.key === '/') {
    // A page that has a filter of its own is searched by that one.
    const search = document.querySelector('[data-filter]') ?? document.querySelector('[data-search]');
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (event.key === '?' && paletteButton) void openPalette('keys');
  else if (event.key === 'g') expectGo(true);
  else if (['ArrowDown', 'ArrowUp', 'Home', 'End'].includes(event.key)) moveInTable(event);
});

/** Escape leaves a row that is edited in place, as its link does. */
function cancelRow(event) {
  const row = event.target instanceof Element ? event.target.closest('.row-form') : null;
  row?.querySelector('[data-cancel] a')?.click();
}

/** Arrows lead from the search into what is suggested and back. */
function moveInSuggestions(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const box = event.target instanceof Element ? event.target.closest('.search') : null;
  if (!box || !step) return false;
  const places = [box.querySelector('input'), ...box.querySelectorAll('.suggestions a')];
  event.preventDefault();
  places[(places.indexOf(event.target) + step + places.length) % places.length].focus();
  return true;
}

function moveInTable(event) {
  const box = event.target instanceof Element ? event.target.closest('.table-scroll') : null;
  const rows = [...(box?.querySelectorAll('table[data-rows] tbody tr:not(.row-detail)') ?? [])];
  if (rows.length === 0) return;
  const at = rows.indexOf(event.target.closest('tbody tr'));
  const wanted = {
    ArrowDown: at + 1,
    ArrowUp: at < 0 ? rows.length - 1 : at - 1,
    Home: 0,
    End: rows.length - 1,
  }[event.key];
  const row = rows[Math.max(0, Math.min(rows.length - 1, wanted))];
  const focusable = row.querySelector('th a, a, button');
  if (!focusable) row.tabIndex = -1;
  event.preventDefault();
  (focusable ?? row).focus({ preventScroll: true });
  row.scrollIntoView({ block: 'nearest' });
}

/** A tip stands beside what it is about, also where a table would cut it off. */
function placeTip(event) {
  const about = event.target instanceof Element ? event.target.closest('.has-tip') : null;
  const tip = about?.querySelector('.tip');
  if (!tip) return;
  const { left, bottom, top } = about.getBoundingClientRect();
  const isLow = bottom > innerHeight * 0.7;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - 440))}px`;
  tip.style.top = isLow ? 'auto' : `${bottom + 4}px`;
  tip.style.bottom = isLow ? `${innerHeight - top + 4}px` : 'auto';
}
document.addEventListener('mouseover', placeTip);
document.addEventListener('focusin', placeTip);

/** Ages grow while the page stands: the server's clock at rendering plus the time passed since. */
const seenAges = new WeakMap();
const units = [
  [86_400, 'days', 172_800],
  [3600, 'h', 3600],
  [60, 'min', 60],
  [1, 's', 0],
];

/** The same words as the server's. */
function spanOf(seconds) {
  const days = seconds / 86_400;
  const years = Math.max(1, Math.round(days / 365.25));
  if (days >= 345) return years === 1 ? '1 year' : `${years} years`;
  if (days >= 60) return `${Math.floor(days / 30.44)} months`;
  const [length, unit] = units.find(([, , least]) => seconds >= least);
  return `${Math.floor(seconds / length)} ${unit}`;
}

function growAges() {
  for (const element of document.querySelectorAll('time[data-now]')) {
    let seen = seenAges.get(element);
    if (seen?.now !== element.dataset.now) {
      seen = { now: element.dataset.now, at: performance.now() };
      seenAges.set(element, seen);
    }
    const nowMs = Number(seen.now) + performance.now() - seen.at;
    const seconds = Math.round((nowMs - Date.parse(element.dateTime)) / 1000);
    const size = Math.abs(seconds);
    const span = spanOf(size);
    const text = size < 2 ? 'now' : seconds > 0 ? `${span} ago` : `in ${span}`;
    if (element.textContent !== text) element.textContent = text;
  }
}

/** Moments in the reader's format, and in UTC as everywhere: people who talk about a page read the same. */
const timeForms = {
  day: { dateStyle: 'medium' },
  minutes: { dateStyle: 'medium', timeStyle: 'short' },
  seconds: { dateStyle: 'medium', timeStyle: 'medium' },
};

function formatTimes() {
  for (const element of document.querySelectorAll('time[data-form]')) {
    const form = { ...timeForms[element.dataset.form], timeZone: 'UTC' };
    const text = new Intl.DateTimeFormat(navigator.languages, form).format(Date.parse(element.dateTime));
    if (element.textContent !== text) element.textContent = text;
  }
}

/** `1,234.5` and `$12.34`, as the server writes them for every reader, so that no name, address or version is one. */
const numbers = /(?<![\w.,])(\$?)(\d{1,3}(?:,\d{3})+|\d+)(\.\d+)?(?!\w|[.,]\d)/g;
const verbatim = 'code, pre, time, textarea, select, script, [translate=no]';
/** What was written here: it is not read as a number of the server again. */
const written = new WeakMap();

function formatNumber(dollar, whole, fraction = '') {
  const digits = Math.max(0, fraction.length - 1);
  return new Intl.NumberFormat(navigator.languages, {
    ...{ minimumFractionDigits: digits, maximumFractionDigits: digits },
    ...(dollar && { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' }),
  }).format(`${whole.replaceAll(',', '')}${fraction}`);
}

/** Money everywhere, and the numbers of figures, in the reader's format. */
function formatNumbers() {
  if (formatNumber('$', '1,234', '.5') === '$1,234.5') return;
  const walk = document.createTreeWalker(document.querySelector('main') ?? document.body, 4);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (!/\d/.test(node.data) || written.get(node) === node.data || node.parentElement.closest(verbatim))
      continue;
    const isFigure = node.parentElement.closest('.figure, .kind-figure') !== null;
    const text = node.data.replace(numbers, (given, dollar, whole, fraction) =>
      dollar || (isFigure && (fraction || whole.includes(',')))
        ? formatNumber(dollar, whole, fraction)
        : given,
    );
    if (text === node.data) continue;
    node.data = text;
    written.set(node, text);
  }
}

// Most pages have nothing for htmx, so most pages don't load it before the first search.
if (document.querySelector('[hx-get]:not([data-search]), [hx-post]')) void import('./htmx.js');
const searchField = document.querySelector('[data-search][hx-get]');
searchField?.addEventListener('focus', () => void import('./htmx.js'), { once: true });
// What was typed while it was on its way is searched too.
searchField?.addEventListener('htmx:after:init', () => {
  if (searchField.value !== searchField.defaultValue) searchField.dispatchEvent(new Event('input'));
});

/** A refused form may be far down the page: it shows where to go on. */
if (performance.getEntriesByType('navigation')[0]?.responseStatus >= 400) {
  const wrong = document.querySelector('main [aria-invalid="true"]');
  if (wrong) wrong.focus();
  else document.querySelector('main .form-error')?.scrollIntoView({ block: 'center' });
}

/** On a phone the tab of the page may lie beyond the edge. */
for (const tab of document.querySelectorAll('.tabs a[aria-current]')) {
  const { parentElement: bar } = tab;
  const beyond = tab.offsetLeft - bar.offsetLeft + tab.offsetWidth - bar.clientWidth;
  if (beyond > 0) bar.scrollLeft = beyond + 16;
}

showTheme();
formatTimes();
formatNumbers();
growAges();
setInterval(growAges, 1000);
const checkConfirms = () => {
  for (const box of document.querySelectorAll('[data-confirm]')) checkConfirm(box);
};
checkConfirms();
document.addEventListener('refreshed', () => {
  formatTimes();
  formatNumbers();
  growAges();
  checkConfirms();
});
for (const toast of document.querySelectorAll('[data-toast="leave"]'))
  setTimeout(() => toast.remove(), 10_000);
