/**
 * The frame of every page: navigation, breadcrumb, search, the signed-in person, the theme switch.
 *
 * `shell` gives a whole document. Everything works without JavaScript: on a phone the navigation folds into a
 * popover, which browsers open by themselves.
 */
import { createHash } from 'node:crypto';
import { assetUrl } from './assets.ts';
import { CSRF_FIELD, hiddenField } from './form.ts';
import { attributes, type Content, classes, type Html, html, jsonScript } from './html.ts';
import { link, safeHref } from './link.ts';
import { presentProvider } from './provider.ts';

export interface NavigationItem {
  label: string;
  href: string;
  /** The letter that goes here after `g`. */
  key?: string;
  /** The item whose part of the product one is in. */
  current?: boolean;
  /** A figure behind the label, for what waits. */
  count?: number | undefined;
}

export interface NavigationGroup {
  /** Heading over the items; left out for the first group. */
  label?: string;
  items: readonly NavigationItem[];
  /** Folded under its label, for what is set up once; open where the current page is in it. */
  isFolded?: boolean;
  /** The heading unfolds into these, other things with the same pages; its own one among them is `current`. */
  switch?: { label: string; items: readonly { label: string; href: string; current?: boolean }[] };
}

export interface Crumb {
  label: string;
  href?: string;
}

export interface Person {
  name: string;
  /** The organization or the role: "Northwind", "operator, read-only". */
  detail?: string | undefined;
  /** The page of their own account. */
  href?: string | undefined;
}

export interface PaletteOptions {
  /** Answers `paletteHits` to `?q=`. */
  url: string;
  /** What one can do from everywhere. */
  actions: readonly { label: string; href: string }[];
}

export interface ShellOptions {
  /** Which part of the product: "Customer portal", "Operations", "Monitor". */
  area: string;
  /** Where the product's name leads. */
  home: string;
  /** The page's title in the browser; the area is added. */
  title: string;
  navigation: readonly NavigationGroup[];
  /** The way to this page, the page itself last and without `href`. */
  breadcrumb?: readonly Crumb[];
  /** A GET form; `/` focuses it. */
  search?:
    | {
        action: string;
        placeholder: string;
        name?: string;
        value?: string | undefined;
        /** A page that shows what fits while one types, as an element with the id `suggestions`. */
        suggestUrl?: string;
      }
    | undefined;
  /** The command palette (Ctrl-K): what it finds beside the pages of the navigation and the actions of the present page. */
  palette?: PaletteOptions | undefined;
  /** Who is signed in. Without a person there is no sign-out form. */
  person?: Person | undefined;
  /** Token of the sign-out form; needed with a person. */
  csrfToken?: string | undefined;
  /** The outcome of the last action (`toast`). */
  toast?: Html | undefined;
  /** Narrow text instead of the full width, for settings and forms. */
  isNarrow?: boolean;
}

/** The way to a page from the item of the navigation that it is below; the item's own page has its label as title. */
export function crumbsTo(title: string, navigation: readonly NavigationGroup[]): Crumb[] {
  const item = navigation.flatMap(({ items }) => items).find(({ current }) => current);
  return item === undefined || item.label === title
    ? [{ label: title }]
    : [{ label: item.label, href: item.href }, { label: title }];
}

/** A whole page. */
export function shell(options: ShellOptions, content: Content): Html {
  return bareDocument(
    `${options.title} · ${options.area}`,
    html`<a class="skip-link" href="#content">Skip to the content</a><div class="shell">${sidebar(options)}<div class="column">${topBar(options)}<main id="content" class="${options.isNarrow ? 'content narrow' : 'content'}" tabindex="-1">${content}</main></div></div>${options.toast}`,
  );
}

/** No styles injected, no history of its own, and no error page swapped into a part of a page. */
const HTMX_SETTINGS = JSON.stringify({
  includeIndicatorCSS: false,
  history: false,
  noSwap: [204, 304, '4xx', '5xx'],
  // An element that the reader opened stays open when its surroundings refresh.
  morphIgnore: ['data-htmx-powered', 'open'],
});

/** A page with one card and no navigation, such as those of sign-in and of errors. */
export function alonePage(
  options: { area: string; title: string /** `/` by default. */; home?: string; isSignedOut?: true },
  content: Content,
): Html {
  const { area, title, home = '/', isSignedOut } = options;
  return bareDocument(
    `${title} · ${area}`,
    html`<link rel="stylesheet" href="${assetUrl('alone.css')}"><main${attributes({ class: 'alone', 'data-signed-out': isSignedOut })}>${brand(area, home)}<div class="card">${content}</div>${providerLinks()}</main>`,
  );
}

/** The provider's part of a page in one scheme, to be looked at inside another page. */
export function schemePreview(scheme: 'light' | 'dark', area: string, content: Content): Html {
  return html`<div class="scheme-preview is-${scheme}">${brand(area, '/')}${content}${providerLinks()}</div>`;
}

function bareDocument(title: string, body: Content): Html {
  // The theme script is small and blocks on purpose: a page must not flash in the wrong scheme.
  return html`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark"><meta name="htmx-config" content="${HTMX_SETTINGS}"><title>${title}</title><link rel="icon" href="${assetUrl('logo')}"><link rel="stylesheet" href="${assetUrl('pages.css')}"><script src="${assetUrl('theme.js')}"></script><script type="module" src="${assetUrl('pages.js')}"></script></head><body>${body}</body></html>`;
}

/** The provider's logo, or a mark and its name. */
function brand(area: string, home: string): Html {
  const { name, logo } = presentProvider();
  if (logo)
    return html`<a class="brand" href="${safeHref(home)}"><img class="brand-logo" src="${assetUrl('logo')}" alt="${name}"><span class="brand-area">${area}</span></a>`;
  return html`<a class="brand" href="${safeHref(home)}"><svg class="brand-mark" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true"><rect x="2" y="3" width="20" height="7" rx="2"></rect><rect x="2" y="14" width="20" height="7" rx="2"></rect><circle cx="7" cy="6.5" r="1.5"></circle><path d="M6 17.5h4l1.5-2 2 4 1.5-2h3"></path></svg><span class="brand-name">${name}</span><span class="brand-area">${area}</span></a>`;
}

function sidebar(options: ShellOptions): Html {
  const groups = options.navigation.map((group) => {
    const items =
      group.items.length > 0 &&
      html`<ul>${group.items.map((item) => html`<li>${navigationLink(item)}</li>`)}</ul>`;
    const isOpen = group.items.some((item) => item.current);
    return html`<div class="navigation-group">${
      group.isFolded
        ? html`<details class="navigation-switch navigation-fold"${attributes({ open: isOpen })}><summary><span>${group.label}</span></summary>${items}</details>`
        : [groupHeading(group), items]
    }</div>`;
  });
  return html`<nav id="navigation" class="sidebar" popover aria-label="Main">${brand(options.area, options.home)}${groups}<div class="sidebar-foot">${themeSwitch()}${personBox(options)}${providerLinks()}</div></nav>`;
}

/** Help and legal pages of the provider. */
function providerLinks(): Content {
  const { links } = presentProvider();
  return (
    links.length > 0 &&
    html`<p class="provider-links">${links.map(({ label, href }) => link(href, label, { kind: 'quiet' }))}</p>`
  );
}

function groupHeading(group: NavigationGroup): Content {
  if (!group.switch) return group.label && html`<p class="navigation-label">${group.label}</p>`;
  const items = group.switch.items.map(
    (item) =>
      html`<li><a${attributes({ href: safeHref(item.href), 'aria-current': item.current ? 'true' : undefined })}><span>${item.label}</span></a></li>`,
  );
  return html`<details class="navigation-switch"><summary title="${group.switch.label}"><span>${group.label}</span><span class="visually-hidden">, ${group.switch.label}</span></summary><ul>${items}</ul></details>`;
}

function navigationLink(item: NavigationItem): Html {
  return html`<a${attributes({
    href: safeHref(item.href),
    'aria-current': item.current ? 'page' : undefined,
    'data-go': item.key,
    'aria-keyshortcuts': item.key ? `g ${item.key}` : undefined,
  })}><span>${item.label}</span>${item.key && html`<kbd class="needs-script" aria-hidden="true">g ${item.key}</kbd>`}${item.count !== undefined && html`<span class="count">${item.count}</span>`}</a>`;
}

function topBar(options: ShellOptions): Html {
  const crumbs = options.breadcrumb?.map(
    (crumb) =>
      html`<li>${crumb.href ? link(crumb.href, crumb.label, { kind: 'quiet' }) : html`<span aria-current="page">${crumb.label}</span>`}</li>`,
  );
  return html`<header class="${classes('top-bar', !crumbs && !options.search && 'is-bare', options.palette && 'has-palette')}"><button type="button" class="menu-button button" popovertarget="navigation">Menu</button>${
    crumbs && html`<nav class="breadcrumb" aria-label="Breadcrumb"><ol>${crumbs}</ol></nav>`
  }<span class="freshness needs-script" data-freshness></span><span class="visually-hidden" role="status" data-freshness-said></span>${options.search && searchForm(options.search)}${paletteButton(options)}</header>`;
}

/**
 * Opens the palette, which a script makes when it is first asked for. Recent pages are kept in the browser under the key of
 * this session, and dropped when another session finds them: nothing is left to the next person at the same browser.
 */
function paletteButton({ palette, csrfToken }: ShellOptions): Content {
  if (!palette) return '';
  const actions = palette.actions.map(({ label, href }) => ({ label, href: safeHref(href) }));
  return html`<button${attributes({
    type: 'button',
    class: 'palette-button button needs-script',
    'data-palette': safeHref(palette.url),
    'data-session':
      csrfToken && createHash('sha256').update(`recent ${csrfToken}`).digest('base64url').slice(0, 12),
    'aria-haspopup': 'dialog',
    'aria-keyshortcuts': 'Control+K Meta+K',
  })}><svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><circle cx="7" cy="7" r="4.5"></circle><path d="M10.5 10.5 14 14"></path></svg><span class="visually-hidden">Go to a page, a server or an action </span><kbd>Ctrl K</kbd></button>${jsonScript('palette-actions', actions)}`;
}

function searchForm(search: NonNullable<ShellOptions['search']>): Html {
  return html`<form class="search" role="search" method="get" action="${safeHref(search.action)}"><input${attributes(
    {
      type: 'search',
      name: search.name ?? 'q',
      value: search.value,
      placeholder: search.placeholder,
      'aria-label': search.placeholder,
      'aria-keyshortcuts': '/',
      'data-search': true,
      autocomplete: search.suggestUrl && 'off',
      'hx-get': search.suggestUrl && safeHref(search.suggestUrl),
      'hx-trigger': search.suggestUrl && 'input changed delay:150ms',
      'hx-target': search.suggestUrl && '#suggestions',
      'hx-swap': search.suggestUrl && 'outerHTML',
      // The default would drop what is typed while two requests are on their way.
      'hx-sync': search.suggestUrl && 'replace',
    },
  )}><kbd class="needs-script" aria-hidden="true">/</kbd>${search.suggestUrl && html`<div id="suggestions" class="suggestions"></div>`}</form>`;
}

function themeSwitch(): Html {
  const choices = [
    ['system', 'Auto'],
    ['light', 'Light'],
    ['dark', 'Dark'],
  ] as const;
  return html`<div class="theme-switch needs-script" role="group" aria-label="Colours">${choices.map(
    ([value, label]) =>
      html`<button type="button" data-theme-choice="${value}" aria-pressed="false">${label}</button>`,
  )}</div>`;
}

function personBox(options: ShellOptions): Content {
  const { person, csrfToken } = options;
  if (!person) return '';
  if (!csrfToken)
    throw new TypeError('the shell of a signed-in person needs the CSRF token of its sign-out form');
  return html`<div class="person"><div class="person-name"><span>${person.href ? link(person.href, person.name, { kind: 'quiet' }) : person.name}</span>${person.detail && html`<span class="hint">${person.detail}</span>`}</div><form method="post" action="/sign-out">${hiddenField(CSRF_FIELD, csrfToken)}<button type="submit" class="button small">Sign out</button></form></div>`;
}
