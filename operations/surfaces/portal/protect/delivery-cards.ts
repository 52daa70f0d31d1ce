/** How the delivery of what was observed stands (NET-4.10): when it was last tried, confirmed, and for which time. */
import type { LiveStatus, MinuteStatus } from '#operations/protect/index.ts';
import { definitionList, formatCount, type Html, html, moment, section } from '#service-kit/pages/index.ts';

interface Card {
  title: string;
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** End of the newest observation that was acknowledged. */
  observedMs: number | null;
  counts: string;
  /** A fixed description of what holds it back. */
  problem: string | null;
}

export function deliverySection(cards: readonly Html[]): Html {
  return section(
    {
      title: 'Delivery',
      id: 'delivery',
      description:
        'How traffic gets here from the sensors. A delivery without data does not count as confirmed.',
    },
    html`<div class="cards">${cards}</div>`,
  );
}

export function liveCard(status: LiveStatus, nowMs: number): Html {
  const latestMs = status.latestAt?.getTime() ?? null;
  return card(
    {
      title: 'Live export',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: latestMs === null ? null : latestMs + 10_000,
      counts: `${formatCount(status.buckets)} buckets of ${addresses(status.addresses)} in the last delivery`,
      problem: status.isRefused ? 'Refused: another monitor site delivers this address.' : null,
    },
    nowMs,
  );
}

export function minutesCard(status: MinuteStatus, nowMs: number): Html {
  const latestMs = status.latestAt?.getTime() ?? null;
  return card(
    {
      title: 'Minute history',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: latestMs === null ? null : latestMs + 60_000,
      counts: `${formatCount(status.minutes)} minutes of ${addresses(status.addresses)} in the last hour`,
      problem: status.isRefused ? 'Refused: another monitor site delivers this address.' : null,
    },
    nowMs,
  );
}

const addresses = (count: number) => (count === 1 ? '1 address' : `${formatCount(count)} addresses`);

function card(given: Card, nowMs: number): Html {
  const time = (at: Date | null) => (at === null ? 'never' : moment(at.getTime(), nowMs));
  return html`<div class="card"><h3>${given.title}</h3>${definitionList([
    { term: 'Last attempt', value: time(given.attemptedAt) },
    { term: 'Last confirmed receipt', value: time(given.receivedAt) },
    {
      term: 'Latest acknowledged observation',
      value: given.observedMs === null ? 'none' : moment(given.observedMs, nowMs),
    },
    { term: 'Received', value: given.counts },
    { term: 'Problem', value: given.problem ?? 'none' },
  ])}</div>`;
}
