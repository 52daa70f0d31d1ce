/**
 * Severities of potential vulnerabilities as the field names them: a badge for one, and a bar for how many there are of each.
 * A severity is how bad it would be, never that it is so.
 */
import { type CountedSeverity, countedSeverities, severityRows } from '#contracts/findings.ts';
import { badge } from './feedback.ts';
import { formatCount } from './format.ts';
import { attributes, type Html, html } from './html.ts';
import { link } from './link.ts';

/** Null reads as unrated. The score stands behind the word. */
export function severityBadge(severity: CountedSeverity | null, score: number | null = null): Html {
  const name = severity ?? 'unrated';
  return badge(severityRows[name].tone, score === null ? name : `${name} ${score.toFixed(1)}`);
}

export type SeverityCounts = Readonly<Partial<Record<CountedSeverity, number>>>;

export interface SeverityBarOptions {
  /** What is counted: "Active potential vulnerabilities". */
  label: string;
  counts: SeverityCounts;
  /** Where a severity leads; without it the words are no links. */
  href?: (severity: CountedSeverity) => string;
}

/** Percent of the width that the smallest part takes, so that one of a thousand is seen. */
const partMin = 2;

/** A bar with a part for each severity, and its numbers in words, which are what screen readers read. */
export function severityBar({ label, counts, href }: SeverityBarOptions): Html {
  const of = (name: CountedSeverity) => counts[name] ?? 0;
  const total = countedSeverities.reduce((sum, name) => sum + of(name), 0);
  const shown = countedSeverities.filter((name) => of(name) > 0 || (name !== 'none' && name !== 'unrated'));
  const words = shown.map((name) => {
    const word = badge(of(name) > 0 ? severityRows[name].tone : 'neutral', [
      html`<strong class="figure">${formatCount(of(name))}</strong> `,
      name,
    ]);
    return [href && of(name) > 0 ? link(href(name), word, { kind: 'quiet' }) : word, ' '];
  });
  const shares = shown.map((name) => ({ name, share: total === 0 ? 0 : of(name) / total }));
  return html`<figure class="severities" aria-label="${label}"><svg aria-hidden="true" width="100%" height="10"><rect class="share-track" width="100%" height="10" rx="3"></rect>${partsOf(shares)}</svg><p>${words}</p></figure>`;
}

function partsOf(shares: readonly { name: CountedSeverity; share: number }[]): Html[] {
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
      // A token, as an attribute: the bar takes nothing of the stylesheet that every page loads.
      fill: `var(--${severityRows[name].color})`,
      x: percent(at),
      width: percent(isLast ? width : width - 0.4),
      height: 10,
    })}></rect>`;
  });
}
