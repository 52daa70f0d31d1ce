/** How the delivery of what was observed stands (NET-4.10): when it was last tried, confirmed, and for which time. */
import type {
  FindingStatus,
  IncidentStatus,
  LiveStatus,
  MinuteStatus,
  ScanStatus,
} from '#operations/protect/index.ts';
import {
  age,
  attributes,
  definitionList,
  formatCount,
  type Html,
  html,
  moment,
} from '#service-kit/pages/index.ts';

interface Card {
  title: string;
  attemptedAt: Date | null;
  receivedAt: Date | null;
  /** End of the newest observation that was acknowledged. */
  observedMs: number | null;
  counts: string;
  /** A fixed description of what holds it back. */
  problem: string | null;
  note?: string;
}

/** One of the deliveries, as the section lists it. */
export interface DeliveryCard extends Pick<Card, 'receivedAt' | 'observedMs' | 'problem'> {
  html: Html;
}

/** What was observed, and confirmed, within this time is current. */
const currentMs = 5 * 60_000;

/** How data stand in one line, with each delivery on demand; open where one is held back. */
export function deliverySection(cards: readonly DeliveryCard[], nowMs: number): Html {
  const problem = cards.find((each) => each.problem !== null)?.problem;
  const receivedMs = Math.max(0, ...cards.map(({ receivedAt }) => receivedAt?.getTime() ?? 0));
  // After a pause old minutes may just have come.
  const observedMs = Math.max(0, ...cards.map((each) => each.observedMs ?? 0));
  const line =
    problem ??
    (receivedMs === 0
      ? 'Nothing was delivered yet.'
      : nowMs - receivedMs > currentMs || observedMs === 0
        ? ['Last delivery ', age(receivedMs, nowMs), '.']
        : nowMs - observedMs > currentMs
          ? ['Newest data ', age(observedMs, nowMs), '.']
          : 'Data is current.');
  return html`<details class="entry-details" id="delivery"${attributes({ open: problem !== undefined })}><summary>Delivery: ${line}</summary><p class="hint">How observations get here from the sensors. A delivery without data does not count as confirmed.</p><div class="cards">${cards.map((each) => each.html)}</div></details>`;
}

export function liveCard(status: LiveStatus, nowMs: number): DeliveryCard {
  const latestMs = status.latestAt?.getTime() ?? null;
  return card(
    {
      title: 'Live export',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: latestMs === null ? null : latestMs + 10_000,
      counts: `${formatCount(status.buckets)} buckets of ${addresses(status.addresses)} in the last delivery`,
      problem: status.isRefused ? otherSite : null,
    },
    nowMs,
  );
}

export function minutesCard(status: MinuteStatus, nowMs: number): DeliveryCard {
  const latestMs = status.latestAt?.getTime() ?? null;
  return card(
    {
      title: 'Minute history',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: latestMs === null ? null : latestMs + 60_000,
      counts: `${formatCount(status.minutes)} minutes of ${addresses(status.addresses)} in the last hour`,
      problem: status.isRefused ? otherSite : null,
    },
    nowMs,
  );
}

/** Scans come hourly and daily, whether or not ports change. */
export function scansCard(status: ScanStatus, nowMs: number): DeliveryCard {
  const scans = status.scans === 1 ? '1 scan' : `${formatCount(status.scans)} scans`;
  return card(
    {
      title: 'Port scans',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: status.latestAt?.getTime() ?? null,
      counts: `${scans} of ${addresses(status.addresses)} in the last 24 hours`,
      problem: status.isRefused ? otherSite : null,
    },
    nowMs,
  );
}

/** Checks come after scans, and after the records of the database have changed. */
export function findingsCard(status: FindingStatus, nowMs: number): DeliveryCard {
  const services = status.services === 1 ? '1 service' : `${formatCount(status.services)} services`;
  return card(
    {
      title: 'Potential vulnerabilities',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: status.latestAt?.getTime() ?? null,
      counts: `checks of ${services} of ${addresses(status.addresses)}`,
      problem: status.isRefused ? otherSite : null,
    },
    nowMs,
  );
}

/** Without an attack nothing is delivered, so an old receipt is no problem. */
export function attacksCard(status: IncidentStatus, nowMs: number): DeliveryCard {
  const incidents = status.incidents === 1 ? '1 incident' : `${formatCount(status.incidents)} incidents`;
  return card(
    {
      title: 'Attacks',
      attemptedAt: status.attemptedAt,
      receivedAt: status.receivedAt,
      observedMs: status.latestAt?.getTime() ?? null,
      counts:
        status.incidents === 0
          ? 'no incident in the last 24 hours'
          : `${incidents} of ${addresses(status.addresses)} in the last 24 hours`,
      problem: status.isRefused ? otherSite : null,
      note: 'Sent only while an incident is active.',
    },
    nowMs,
  );
}

const otherSite = 'Refused: another monitor site delivers this address.';

const addresses = (count: number) => (count === 1 ? '1 address' : `${formatCount(count)} addresses`);

function card(given: Card, nowMs: number): DeliveryCard {
  const time = (at: Date | null) => (at === null ? 'never' : moment(at.getTime(), nowMs));
  const { receivedAt, problem } = given;
  const shown = html`<div class="card"><h3>${given.title}</h3>${definitionList([
    { term: 'Last attempt', value: time(given.attemptedAt) },
    { term: 'Last confirmed receipt', value: time(given.receivedAt) },
    {
      term: 'Latest acknowledged observation',
      value: given.observedMs === null ? 'none' : moment(given.observedMs, nowMs),
    },
    { term: 'Received', value: given.counts },
    { term: 'Problem', value: given.problem ?? 'none' },
  ])}${given.note && html`<p class="hint">${given.note}</p>`}</div>`;
  return { html: shown, receivedAt, observedMs: given.observedMs, problem };
}
