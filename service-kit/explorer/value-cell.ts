/** Cells of the explorer's tables. */
import { type Content, html, link, sparkLine } from '#service-kit/pages/index.ts';

/** A value that leads to itself alone, with a quiet minus that leaves it out, and what else there is of it. */
export function valueCell(
  { text, label }: { text: Content; label: string },
  hrefs: { only: string; without: string },
  options: { onlyLabel?: string; more?: Content } = {},
): Content {
  const only = link(hrefs.only, text, options.onlyLabel === undefined ? {} : { label: options.onlyLabel });
  const without = link(hrefs.without, '−', { kind: 'quiet', label: `Leave out ${label}` });
  return html`${only} <span class="leave-out">${without}${options.more ?? ''}</span>`;
}

/** A small picture of the whole range; nothing for what has no line of its own. */
export const courseCell = (label: string, rates: readonly (number | null)[]): Content =>
  rates.length > 0 ? sparkLine(rates, `${label} over the range`) : '';
