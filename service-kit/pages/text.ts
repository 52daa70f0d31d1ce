/** Small pieces of text: definition lists, code, copy buttons, moments. */
import { formatAge, formatTime, type Known } from './format.ts';
import { attributes, type Content, type Html, html } from './html.ts';

export interface Definition {
  term: string;
  /** `null` and `undefined` read "unknown". */
  value: Content;
}

/** Facts about one thing, term and value. */
export function definitionList(items: readonly Definition[]): Html {
  return html`<dl class="definitions">${items.map(
    (item) =>
      html`<div><dt>${item.term}</dt><dd>${item.value ?? html`<span class="unknown">unknown</span>`}</dd></div>`,
  )}</dl>`;
}

/** Copies `text` to the clipboard; without JavaScript it is not shown. */
export function copyButton(text: string, label = 'Copy'): Html {
  return html`<button type="button" class="copy needs-script" data-copy="${text}" aria-label="${label}: ${text.length > 40 ? `${text.slice(0, 40)}…` : text}">${label}</button>`;
}

/** An address, a MAC, a token: monospace, never broken in two, with a copy button when `canCopy`. */
export function code(text: string, canCopy = false): Html {
  return html`<span class="code-line"><code>${text}</code>${canCopy && copyButton(text)}</span>`;
}

/** Text whose `parts in backticks` are code, as messages of the API write names of fields. */
export function prose(text: string): Content {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}

export interface CodeBlockOptions {
  code: string;
  /** What it is: "curl", "Answer". */
  label?: string;
  canCopy?: boolean;
}

/** Code in a box of its own that scrolls sideways. */
export function codeBlock(options: CodeBlockOptions): Html {
  return html`<div class="code-block"><div class="code-bar">${options.label && html`<span>${options.label}</span>`}${
    options.canCopy !== false && copyButton(options.code)
  }</div><pre${attributes({ tabindex: 0, 'aria-label': options.label ?? 'Code' })}><code>${options.code}</code></pre></div>`;
}

/** A moment as its age, with the exact UTC time on hover and for programs; `never` for what has not happened. */
export function age(ms: Known<number>, nowMs: number): Html {
  if (ms === null || ms === undefined) return html`<span class="unknown">never</span>`;
  return html`<time datetime="${new Date(ms).toISOString()}" data-now="${nowMs}" title="${formatTime(ms, 'seconds')}">${formatAge(ms, nowMs)}</time>`;
}

/** A moment in UTC, which the page's script writes in the reader's format. Tables say UTC in the header of `time` columns. */
export function utcTime(ms: Known<number>, precision: 'minutes' | 'seconds' | 'day' = 'minutes'): Html {
  if (ms === null || ms === undefined) return html`<span class="unknown">unknown</span>`;
  const zone = precision === 'day' ? '' : html`<span class="zone"> UTC</span>`;
  return html`<time datetime="${new Date(ms).toISOString()}" data-form="${precision}">${formatTime(ms, precision).replace(/ UTC$/, '')}</time>${zone}`;
}

/** A moment in UTC with its age: `2026-11-21 10:14 UTC, 3 min ago`. */
export function moment(ms: Known<number>, nowMs: number): Html {
  if (ms === null || ms === undefined) return html`<span class="unknown">never</span>`;
  return html`<span class="moment">${utcTime(ms)}, <span class="hint">${age(ms, nowMs)}</span></span>`;
}
