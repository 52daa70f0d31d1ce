/** Differences between what the monitor knows and what operations holds, as sentences. */
import { compareFindings } from './compare-findings.ts';
import { compareScans } from './compare-scans.ts';
import { differences } from './differences.ts';
import type { FeedName, Pair } from './pair.ts';

/** Buckets that are surely within the five minutes of a delivery that just ended. */
const liveMs = 240_000;

const comparisons: Readonly<Record<FeedName, (pair: Pair) => Promise<string[]>>> = {
  telemetry: compareMinutes,
  live: compareLive,
  incidents: compareIncidents,
  'port-scans': compareScans,
  vulnerabilities: compareFindings,
};

export async function compare(pair: Pair, feeds: readonly FeedName[]): Promise<string[]> {
  const faults: string[] = [];
  for (const feed of feeds) faults.push(...(await comparisons[feed](pair)));
  return faults;
}

async function compareMinutes({ monitor, operations, addresses, ownedSinceMs }: Pair): Promise<string[]> {
  const now = Math.floor(Date.now() / 60_000) * 60;
  const first = Math.floor(ownedSinceMs / 60_000) * 60;
  const expected = new Map<string, string>();
  for (const address of addresses) {
    const minutes = await monitor.traffic.readAddressMinutes(monitor.siteId, address, first, now);
    for (const one of minutes)
      if (!one.isGap) expected.set(`${address} ${one.minute}`, `${one.rxBytes} ${one.txBytes}`);
  }
  const { rows } = await operations.database.pool.query<{ address: string; minute: Date; bytes: string }>(
    `select address, minute, inbound_bytes || ' ' || outbound_bytes as bytes
     from protect_series join protect_minutes using (allocation_id) where inbound_bytes is not null`,
  );
  return differences(
    'minute',
    expected,
    rows.map((row) => [`${row.address} ${row.minute.getTime() / 1000}`, row.bytes]),
  );
}

async function compareLive({ operations, windows }: Pair): Promise<string[]> {
  const since = Date.now() - liveMs;
  const expected = new Map(
    windows
      .filter((window) => window.startedAtMs >= since)
      .flatMap(({ startedAtMs, hosts }) =>
        hosts.map(({ address, rxBytes, txBytes }): [string, string] => [
          `${address} ${startedAtMs}`,
          `${rxBytes} ${txBytes}`,
        ]),
      ),
  );
  const { rows } = await operations.database.pool.query<{ key: string; in: number; out: number }>(
    `select address || ' ' || (extract(epoch from started_at) * 1000)::bigint as key,
       inbound_bps * 10 / 8 as in, outbound_bps * 10 / 8 as out
     from protect_live_series join protect_live_buckets using (allocation_id) where started_at >= $1`,
    [new Date(since)],
  );
  // A bucket that ended since the last tick is on its way.
  const newest = Math.max(0, ...rows.map(({ key }) => Number(key.split(' ')[1])));
  for (const key of expected.keys()) if (Number(key.split(' ')[1]) > newest) expected.delete(key);
  return differences(
    'bucket',
    expected,
    rows.map((row) => [row.key, `${Math.round(row.in)} ${Math.round(row.out)}`]),
  );
}

/** Of an incident: what a customer sees of it. */
const shown = (table: string) =>
  `concat_ws(' ', class, severity, direction, state, extract(epoch from started_at), extract(epoch from detected_at),
    extract(epoch from last_observed_at), extract(epoch from recovered_at), ${table})`;

async function compareIncidents({ monitor, operations }: Pair): Promise<string[]> {
  const known = await monitor.database.pool.query<{ id: string; text: string }>(
    `select id, ${shown("revision, measured #>> '{peak,pps}'")} as text from incidents
     where target_kind = 'host' and not is_withdrawn`,
  );
  const held = await operations.database.pool.query<{ id: string; text: string }>(
    `select incident_id as id, ${shown('revision, peak_pps')} as text from protect_incidents`,
  );
  return differences(
    'incident',
    new Map(known.rows.map(({ id, text }) => [id, text])),
    held.rows.map(({ id, text }) => [id, text]),
  );
}
