/**
 * Severities of potential vulnerabilities as the field names them: a badge for one, and a bar for how many there are of each.
 * A severity is how bad it would be, never that it is so.
 */
import { badge } from './feedback.ts';
import { formatCount } from './format.ts';
import { attributes, type Html, html } from './html.ts';
import { link } from './link.ts';
import type { Tone } from './tone.ts';

/** From the worst; `unrated` where the database gives none. */
export const severities = ['critical', 'high', 'medium', 'low', 'none', 'unrated'] as const;
export type SeverityName = (typeof severities)[number];

const tones: Readonly<Record<SeverityName, Tone>> = {
  critical: 'bad',
  high: 'bad',
  medium: 'warn',
  low: 'info',
  none: 'neutral',
  unrated: 'neutral',
};

/** Null reads as unrated. The score stands behind the word. */
export function severityBadge(severity: SeverityName | null, score: number | null = null): Html {
  const name = severity ?? 'unrated';
  return badge(tones[name], score === null ? name : `${name} ${score.toFixed(1)}`);
}

export type SeverityCounts = Readonly<Partial<Record<SeverityName, number>>>;

export interface SeverityBarOptions {
  /** What is counted: "Active potential vulnerabilities". */
  label: string;
  counts: SeverityCounts;
  /** Where a severity leads; without it the words are no links. */
  href?: (severity: SeverityName) => string;
}

/** Tokens, as attributes: so the bar takes nothing of the stylesheet that every page loads. */
const fills: Readonly<Record<SeverityName, string>> = {
  critical: 'var(--bad-text)',
  high: 'var(--chart-2)',
  medium: 'var(--chart-5)',
  low: 'var(--chart-1)',
  none: 'var(--n8)',
  unrated: 'var(--n8)',
};

/** Percent of the width that the smallest part takes, so that one of a thousand is seen. */
const partMin = 2;

/** A bar with a part for each severity, and its numbers in words, which are what screen readers read. */
export function severityBar({ label, counts, href }: SeverityBarOptions): Html {
  const of = (name: SeverityName) => counts[name] ?? 0;
  const total = severities.reduce((sum, name) => sum + of(name), 0);
  const shown = severities.filter((name) => of(name) > 0 || (name !== 'none' && name !== 'unrated'));
  const words = shown.map((name) => {
    const word = badge(of(name) > 0 ? tones[name] : 'neutral', [
      html`<strong class="figure">${formatCount(of(name))}</strong> `,
      name,
    ]);
    return [href && of(name) > 0 ? link(href(name), word, { kind: 'quiet' }) : word, ' '];
  });
  const shares = shown.map((name) => ({ name, share: total === 0 ? 0 : of(name) / total }));
  return html`<figure class="severities" aria-label="${label}"><svg aria-hidden="true" width="100%" height="10"><rect class="share-track" width="100%" height="10" rx="3"></rect>${partsOf(shares)}</svg><p>${words}</p></figure>`;
}

function partsOf(shares: readonly { name: SeverityName; share: number }[]): Html[] {
  const drawn = shares.filter(({ share }) => share > 0);
  const widths = drawn.map(({ share }) => Math.max(partMin, share * 100));
  const scale = 100 / widths.reduce((sum, width) => sum + width, 0);
  let x = 0;
  return drawn.map(({ name }, index) => {
    const width = widths[index]! * scale;
    const at = x;
    x += width;
    // A small gap keeps neighbours apart.
    const percent = (value: number) => `${Math.round(value * 100) / 100}%`;
    const isLast = index === drawn.length - 1;
    return html`<rect${attributes({
      fill: fills[name],
      x: percent(at),
      width: percent(isLast ? width : width - 0.4),
      height: 10,
    })}></rect>`;
  });
}
