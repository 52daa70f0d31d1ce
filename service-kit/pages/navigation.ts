/** Moving inside a page: tabs, drawers, and parts that refresh by themselves. */
import { attributes, type Content, type Html, html } from './html.ts';
import { link, safeHref } from './link.ts';

export interface Tab {
  label: string;
  href: string;
  current?: boolean;
  /** A figure behind the label. */
  count?: number | undefined;
}

/** The pages of one thing. They are links: each tab is a page with an address of its own. */
export function tabs(label: string, items: readonly Tab[]): Html {
  return html`<nav class="tabs" aria-label="${label}">${items.map((tab) =>
    link(tab.href, [tab.label, tab.count !== undefined && html` <span class="count">${tab.count}</span>`], {
      kind: 'quiet',
      current: tab.current ?? false,
    }),
  )}</nav>`;
}

export interface DrawerOptions {
  /** Unique in the page. */
  id: string;
  /** The button that opens it. */
  open: string;
  title: string;
  openKind?: 'button' | 'primary' | 'danger';
}

/** Content from the side, over the page; opens and closes without JavaScript. */
export function drawer(options: DrawerOptions, content: Content): Html {
  const kind = options.openKind && options.openKind !== 'button' ? ` ${options.openKind}` : '';
  return html`<button type="button" class="button${kind}" popovertarget="${options.id}">${options.open}</button><div id="${options.id}" class="drawer" popover role="dialog" aria-label="${options.title}"><header class="drawer-header"><h2>${options.title}</h2><button type="button" class="icon-button" popovertarget="${options.id}" popovertargetaction="hide" aria-label="Close">×</button></header><div class="drawer-body">${content}</div></div>`;
}

export interface RefreshOptions {
  /** Unique in the page; the answer must hold an element with the same id. */
  id: string;
  /** A page that renders the same part again, often the page itself. */
  url: string;
  everySeconds: number;
}

export interface EstimateOptions {
  /** Unique in the page; the answer must hold an element with the same id. */
  id: string;
  /** Takes the form as it stands, changes nothing, and answers a page with the same part. */
  url: string;
}

/**
 * What a form comes to, inside it. A script asks again whenever something else is chosen; without one the form needs a
 * button that does (`otherSubmit`).
 */
export function estimate(options: EstimateOptions, content: Content): Html {
  return html`<div${attributes({
    id: options.id,
    class: 'estimate',
    role: 'status',
    'hx-post': safeHref(options.url),
    'hx-trigger': 'change from:closest form',
    'hx-select': `#${options.id}`,
    'hx-swap': 'outerHTML',
  })}>${content}</div>`;
}

/**
 * A part that is fetched again every so often, by the one mechanism that renews lists (`browser/refresh.js`): parts of one
 * address share a request. Without JavaScript it stays as it was rendered.
 */
export function refreshing(options: RefreshOptions, content: Content): Html {
  return html`<div${attributes({
    id: options.id,
    class: 'refreshing',
    'data-refresh': Math.max(5, Math.round(options.everySeconds)),
    'data-url': safeHref(options.url),
  })}>${content}</div>`;
}
