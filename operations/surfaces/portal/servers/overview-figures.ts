/** The row of figures at the top of a server's overview, each leading to the page that tells more. */
import type { BandwidthRow } from '#operations/bandwidth/index.ts';
import { isStale, type LatestRow } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import {
  age,
  formatBitRate,
  formatBytes,
  formatCount,
  type Html,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import { type LiveView, liveStaleMs, newestBucket, sumOf } from '../traffic/live.routes.ts';

export interface OverviewTraffic {
  /** The newest observed minute. */
  latest: LatestRow | undefined;
  /** The running month. */
  month: BandwidthRow | undefined;
}

const endOf = (latest: LatestRow) => latest.minute.getTime() + 60_000;

/** The current rate; null when it is unknown. */
export function rateNow(
  latest: LatestRow | undefined,
  direction: 'inboundBps' | 'outboundBps',
  nowMs: number,
): string | null {
  const rate = latest !== undefined && !isStale(latest.minute.getTime(), nowMs) ? latest[direction] : null;
  return rate === null ? null : formatBitRate(rate);
}

/** The newest bucket while it says something about now; it is there two minutes before the minute is. */
function freshBucket(live: LiveView | undefined, nowMs: number) {
  const newest = live === undefined ? null : newestBucket(live);
  return newest !== null && nowMs - newest.endMs <= liveStaleMs ? newest : null;
}

export function overviewFigures(
  server: Server,
  { latest, month, live }: OverviewTraffic & { live: LiveView | undefined },
  nowMs: number,
): Html {
  const path = `/client/servers/${server.id}`;
  const bucket = freshBucket(live, nowMs);
  const observed = latest === undefined ? 'not observed yet' : ['observed ', age(endOf(latest), nowMs)];
  const rate = (label: string, direction: 'inboundBps' | 'outboundBps') =>
    stat({
      label,
      value:
        bucket === null
          ? (rateNow(latest, direction, nowMs) ?? undefined)
          : formatBitRate(sumOf(bucket.rows, (row) => row[direction])),
      source: bucket === null ? observed : ['over 10 s, ', age(bucket.endMs, nowMs)],
      href: `${path}/traffic`,
    });
  const measured = month?.lastSampledAt ?? null;
  return stats(
    rate('In now', 'inboundBps'),
    rate('Out now', 'outboundBps'),
    stat({
      label: 'Out this month',
      value: month && measured ? formatBytes(month.outboundBytes) : undefined,
      source: measured ? ['measured ', age(measured.getTime(), nowMs)] : 'not measured yet',
      href: `${path}/traffic/usage`,
    }),
    firewallFigure(server, `${path}/firewall`),
  );
}

function firewallFigure({ firewall, hasPublicIp }: Server, href: string): Html {
  if (firewall === null || !firewall.isEnabled) {
    const source = hasPublicIp ? 'everything passes' : 'no public card to filter at';
    return stat({ label: 'Firewall', value: 'off', source, href });
  }
  const sources = { applied: 'in force', pending: 'being applied', failed: 'could not be applied' };
  return stat({
    label: 'Firewall',
    value: `${formatCount(firewall.ruleCount)} ${firewall.ruleCount === 1 ? 'rule' : 'rules'}`,
    source: sources[firewall.status],
    href,
    ...(firewall.status === 'failed' ? { tone: 'bad' as const } : {}),
  });
}
