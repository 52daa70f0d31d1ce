/** What a page says about states and outcomes: badges, banners, toasts, empty states, progress, skeletons. */

import { type Tone, toneMark } from './colours.ts';
import { attributes, type Content, type Html, html } from './html.ts';
import { link } from './link.ts';
import { codeBlock, prose } from './text.ts';

/** A word about a state, with a shape of its own. */
export function badge(tone: Tone, text: Content): Html {
  return html`<span class="badge tone-${tone}"><span class="mark" aria-hidden="true">${toneMark(tone)}</span>${text}</span>`;
}

export interface BannerOptions {
  tone: Tone;
  /** What happened. */
  title: Content;
  /** Why, and what to do now. */
  text?: Content;
  actions?: Content;
}

/** A message that stays in the page. Bad ones are announced at once by screen readers. */
export function banner(options: BannerOptions): Html {
  return html`<div class="banner tone-${options.tone}" role="${options.tone === 'bad' ? 'alert' : 'status'}"><span class="mark" aria-hidden="true">${toneMark(options.tone)}</span><div><p class="banner-title">${options.title}</p>${
    options.text && html`<p>${typeof options.text === 'string' ? prose(options.text) : options.text}</p>`
  }</div>${options.actions && html`<div class="actions">${options.actions}</div>`}</div>`;
}

/** What a name from a URL chooses of a table; undefined where the table itself has no such name, such as `constructor`. */
export const chosenOf = <T>(table: Readonly<Record<string, T>>, name: string | undefined): T | undefined =>
  name !== undefined && Object.hasOwn(table, name) ? table[name] : undefined;

/** The toast after a redirect; the name in the URL chooses its text, which never comes from there. */
export function toastOf(
  texts: Readonly<Record<string, string>>,
  done: string | undefined,
  tone: Tone = 'info',
): { tone: Tone; text: string } | undefined {
  const text = chosenOf(texts, done);
  return text === undefined ? undefined : { tone, text };
}

/** The outcome of the last action, floating; closed by its button, and after ten seconds unless it is bad. */
export function toast(tone: Tone, text: Content): Html {
  return html`<div class="toast tone-${tone}" role="${tone === 'bad' ? 'alert' : 'status'}" data-toast="${tone === 'bad' ? 'stay' : 'leave'}"><span class="mark" aria-hidden="true">${toneMark(tone)}</span><span>${typeof text === 'string' ? prose(text) : text}</span><button type="button" class="icon-button needs-script" data-close aria-label="Close">×</button></div>`;
}

export interface EmptyStateOptions {
  /** What is not there: "No servers yet". */
  title: string;
  /** What will appear here, and what makes it appear. */
  text: Content;
  /** A command that makes it appear, with a copy button. */
  command?: string;
  action?: { label: string; href: string };
}

/** A value that the answer to one request shows and no other page; `more` says why, or what it is for. */
export const shownOnce = (label: string, value: string, more = ''): Html => {
  const text = `It is shown on this page only.${more && ` ${more}`}`;
  const title = `Copy the ${label.toLowerCase()} now`;
  return html`${banner({ tone: 'warn', title, text })}${codeBlock({ code: value, label })}`;
};

/** Stands where rows will be, and teaches how they come. */
export function emptyState(options: EmptyStateOptions): Html {
  return html`<div class="empty"><p class="empty-title">${options.title}</p><p class="hint">${options.text}</p>${
    options.command && codeBlock({ code: options.command, label: 'Command' })
  }${options.action && html`<p>${link(options.action.href, options.action.label, { kind: 'primary' })}</p>`}</div>`;
}

/**
 * Leads back to the form that was refused, which the browser fills as it was sent. Shown by the script that makes it work; the
 * browser's own way back is there without it.
 */
export function backButton(kind: 'primary' | 'button' = 'button'): Html {
  return html`<button type="button" class="${kind === 'primary' ? 'button primary' : 'button'}" data-back hidden>Back</button>`;
}

export interface AgendaItem {
  tone: Tone;
  /** Its state in a word: "now", "next", "done". */
  state: string;
  /** Usually a link to where it is dealt with. */
  title: Content;
  text: Content;
}

/** A list of items that need attention; on a phone each item takes the width that it needs. */
export function agenda(label: string, items: readonly AgendaItem[]): Html {
  return html`<ul class="agenda" aria-label="${label}">${items.map(
    (item) =>
      html`<li class="tone-${item.tone}"><div class="agenda-title"><span>${item.title}</span>${badge(item.tone, item.state)}</div><p>${item.text}</p></li>`,
  )}</ul>`;
}

export interface ProgressOptions {
  label: string;
  /** Absent while it is unknown. */
  value?: number | undefined;
  max?: number | undefined;
  /** "Writing the disk, 3 of 7 steps". */
  detail?: Content;
}

/** A long task on its way; the page may be left. */
export function progress(options: ProgressOptions): Html {
  return html`<div class="progress"><div class="progress-line"><span>${options.label}</span>${
    options.detail && html`<span class="hint">${options.detail}</span>`
  }</div><progress${attributes({ 'aria-label': options.label, value: options.value, max: options.max })}></progress></div>`;
}

/** Keeps the room of content that is fetched later, so that nothing jumps: `rows` lines of table height. */
export function skeleton(rows: number, label = 'Loading'): Html {
  const lines = Array.from(
    { length: Math.min(50, Math.max(1, rows)) },
    () => html`<span class="skeleton-row"></span>`,
  );
  return html`<div class="skeleton" role="status"><span class="visually-hidden">${label}</span>${lines}</div>`;
}
