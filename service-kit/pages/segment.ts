/** A network drawn as a bar with what hangs on it; without styles it is a list. */

import type { Tone } from './colours.ts';
import { type Content, type Html, html } from './html.ts';

export interface SegmentMember {
  /** Usually a link. */
  name: Content;
  /** Its address. */
  detail: string;
  /** `good` is plugged in; `info` and `warn` are on their way, `bad` is not connected. */
  tone: Tone;
  /** The same in words. */
  state: string;
}

export interface SegmentOptions {
  /** Its accessible name. */
  label: string;
  /** On the bar: its block of addresses. */
  title: Content;
  /** At the bar's end: how much room is left. */
  note?: Content;
  members: readonly SegmentMember[];
  /** Members beyond those drawn. */
  more?: number;
  /** Stands in the place of members that are not there. */
  emptyText: string;
}

export function segment(options: SegmentOptions): Html {
  const members = options.members.map(
    (member) =>
      html`<li class="tone-${member.tone}"><span>${member.name}</span><code>${member.detail}</code><span class="hint">${member.state}</span></li>`,
  );
  const rest =
    members.length === 0
      ? html`<li class="segment-free">${options.emptyText}</li>`
      : (options.more ?? 0) > 0 && html`<li class="segment-free">and ${options.more} more</li>`;
  return html`<figure class="segment" aria-label="${options.label}"><div class="segment-bar"><span>${options.title}</span>${
    options.note && html`<span class="hint">${options.note}</span>`
  }</div><ul class="segment-members">${members}${rest}</ul></figure>`;
}
