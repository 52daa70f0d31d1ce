/**
 * Every link of every page is built here, because no template engine stops `javascript:` URLs.
 *
 * An address is a path on this server (`/…`), a query (`?…`), a fragment (`#…`), or an absolute http, https or
 * mailto URL. Anything else throws, so a bad one is found by the first test that renders it.
 */
import { CodedError } from '#common/errors/index.ts';
import { attributes, type Content, classes, type Html, html } from './html.ts';

export interface LinkOptions {
  /** `plain` (default) is text in the accent colour; the others look like buttons; `quiet` is text in its own colour. */
  kind?: 'plain' | 'quiet' | 'button' | 'primary' | 'danger';
  /** Marks the link to the page one is on. */
  current?: boolean;
  /** The accessible name, where the text alone doesn't say where it leads. */
  label?: string;
  /** Offers the target as a file. */
  download?: boolean;
}

const buttonClasses = {
  plain: 'link',
  quiet: 'link-quiet',
  button: 'button',
  primary: 'button primary',
  danger: 'button danger',
};

/** A link. Throws `pages.unsafe_link` for an address a browser might execute. */
export function link(href: string, text: Content, options: LinkOptions = {}): Html {
  const kind = options.kind ?? 'plain';
  const safe = safeHref(href);
  return html`<a${attributes({
    href: safe,
    class: classes(buttonClasses[kind]),
    'aria-current': options.current ? 'page' : undefined,
    'aria-label': options.label,
    download: options.download ?? false,
    rel: /^[a-z]+:/i.test(safe) ? 'noopener noreferrer' : undefined,
  })}>${text}</a>`;
}

/** True for an address that `link` accepts. */
export function isSafeHref(href: string): boolean {
  // Browsers drop tabs and line breaks inside a scheme and skip leading control characters and spaces.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u0020\u007f-\u009f\\]/.test(href)) return false;
  if (/^[?#]/.test(href)) return true;
  if (/^\/(?!\/)/.test(href)) return true;
  return /^(https?:\/\/[^/]|mailto:[^:]+@)/i.test(href) && URL.canParse(href);
}

/** The address itself when it is safe; throws `pages.unsafe_link` otherwise. */
export function safeHref(href: string): string {
  if (isSafeHref(href)) return href;
  throw new CodedError(
    'pages.unsafe_link',
    'This page holds a link that may not be shown. Tell the operator.',
    { href },
  );
}

/** The same page with other query values: `undefined` removes one, the rest of the query stays. */
export function withQuery(
  url: string,
  changes: Readonly<Record<string, string | number | undefined>>,
): string {
  const { path, query } = splitUrl(url);
  const parameters = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) parameters.delete(name);
    else parameters.set(name, String(value));
  }
  const rest = parameters.toString();
  return rest === '' ? path : `${path}?${rest}`;
}

/** A path and its query, without a fragment. Not `split`: a query may hold further question marks. */
export function splitUrl(url: string): { path: string; query: string } {
  const whole = url.split('#')[0] ?? '';
  const at = whole.indexOf('?');
  return at < 0 ? { path: whole, query: '' } : { path: whole.slice(0, at), query: whole.slice(at + 1) };
}
