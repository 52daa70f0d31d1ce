/** Ranges of pages about networks: whole hours, at most as long as networks are kept. */
import { keptMs, keptText } from '#contracts/retention.ts';
import { formatTime, type Range, readRange, withQuery } from '#service-kit/pages/index.ts';

const hourMs = 3_600_000;
const readMaxMs = keptMs('traffic');

/** The range of a query in whole hours, as networks are kept. */
export function readHours(query: Readonly<Record<string, unknown>>, nowMs: number): Range {
  const range = readRange(query, nowMs, '7d');
  if (range.toMs - range.fromMs > readMaxMs)
    return {
      ...wholeHours(readRange({ range: '30d' }, nowMs)),
      error: `Networks are kept for ${keptText('traffic')}.`,
    };
  return wholeHours(range);
}

function wholeHours(range: Range): Range {
  return {
    ...range,
    fromMs: Math.floor(range.fromMs / hourMs) * hourMs,
    toMs: Math.ceil(range.toMs / hourMs) * hourMs,
  };
}

/** `2026-11-20 14:00 to 2026-11-20 15:00 UTC`. */
export const hoursText = ({ fromMs, toMs }: Range): string =>
  `${formatTime(fromMs).replace(/ UTC$/, '')} to ${formatTime(toMs)}`;

/** The hours of a row as a query. */
export function hourRange({ firstHour, lastHour }: { firstHour: number; lastHour: number }) {
  const utc = (second: number) => `${new Date(second * 1000).toISOString().slice(0, 16)}Z`;
  return { range: 'custom', from: utc(firstHour), to: utc(lastHour + 3600) };
}

/** URL of who talked to a network. */
export const networkHref = (
  siteId: number,
  network: string,
  query: Readonly<Record<string, string | undefined>>,
): string => withQuery(`/sites/${siteId}/networks`, { network, ...query });
