/** The top of a page (its state first), its sections, and its key figures. */

import { type Tone, toneMark } from './colours.ts';
import { type Content, classes, type Html, html } from './html.ts';
import { link } from './link.ts';

export interface PageHeaderOptions {
  title: Content;
  /** The one sentence of truth: "Under attack since 14:02, 3 of 12 servers", "All quiet. Last sample 20 s ago". */
  state?: { tone: Tone; text: Content } | undefined;
  /** Links and buttons that act on the whole page. */
  actions?: Content;
}

/** The page's heading with its state sentence and its actions. */
export function pageHeader(options: PageHeaderOptions): Html {
  return html`<header class="page-header"><div><h1>${options.title}</h1>${
    options.state &&
    html`<p class="state tone-${options.state.tone}"><span class="mark" aria-hidden="true">${toneMark(options.state.tone)}</span> ${options.state.text}</p>`
  }</div>${options.actions && html`<div class="actions">${options.actions}</div>`}</header>`;
}

export interface SectionOptions {
  title: Content;
  /** One sentence under the title. */
  description?: Content;
  actions?: Content;
  /** For links to it. */
  id?: string;
}

/** A titled part of a page. */
export function section(options: SectionOptions, content: Content): Html {
  return html`<section class="section"${options.id ? html` id="${options.id}"` : ''}><header class="section-header"><div><h2>${options.title}</h2>${
    options.description && html`<p class="hint">${options.description}</p>`
  }</div>${options.actions && html`<div class="actions">${options.actions}</div>`}</header>${content}</section>`;
}

export interface StatOptions {
  label: string;
  /** The figure as text, without its unit where `unit` gives it; leave it out when it is not known. */
  value: string | undefined;
  unit?: string | undefined;
  /** When and where the figure comes from: "20 s ago, uplink of node-3". */
  source?: Content;
  tone?: Tone | undefined;
  href?: string | undefined;
}

/** A key figure. A missing value reads "unknown". */
export function stat(options: StatOptions): Html {
  const tone = options.tone ?? 'neutral';
  const label = options.href ? link(options.href, options.label, { kind: 'quiet' }) : options.label;
  return html`<div class="${classes('stat', `tone-${tone}`)}"><dt>${label}</dt><dd><span class="figure">${
    tone === 'neutral' ? '' : html`<span class="mark" aria-hidden="true">${toneMark(tone)}</span> `
  }${options.value ?? 'unknown'}${options.value !== undefined && options.unit ? html` <span class="unit">${options.unit}</span>` : ''}</span>${
    options.source && html`<span class="source">${options.source}</span>`
  }</dd></div>`;
}

/** A row of key figures that wraps. */
export function stats(...items: readonly Html[]): Html {
  return html`<dl class="stats">${items}</dl>`;
}
