/**
 * Verdicts about foreign addresses. A row of facts keeps the one that was given when it was stored, and never changes. Verdicts that
 * changed later are spans of minutes in PostgreSQL, written in the transaction that moved the server; reads apply them to rows that
 * are older. Nearly always there are none.
 */
import { formatAddress, parseAddress } from '#common/ip/index.ts';
import { type ChangedAddress, checkAddresses, type ForeignCheck } from '#monitor/placements/index.ts';
import { type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { dayOf, daySeconds, type SiteDay } from '../control/engine-use-store.ts';
import {
  beginEpoch,
  findSpans,
  listSpans,
  type VerdictRange,
  type VerdictSpan,
  writeSpans,
} from '../control/verdict-span-store.ts';
import type { Engine } from './engine-store.ts';
import { ch, type Fragment, numbers, plain, seconds, texts } from './statement.ts';

/** What is older has been delivered, and shows as it was. */
const rejudgedSeconds = 24 * 3600;
/** Addresses that are judged at once: a day of minutes of each is held in memory. */
const batchSize = 100;

/** An expression over a row of facts: whether it is foreign. `address` is the column with the local address. */
export type ForeignExpression = (address: 'address' | 'local') => Fragment;

export async function readForeign(db: Queryable, range: VerdictRange): Promise<ForeignExpression> {
  const rows = await listSpans(db, range);
  if (rows.length === 0) return () => plain('is_foreign');
  const captures = numbers(rows.map((one) => one.captureId));
  const addresses = ch`arrayMap(h -> unhex(h), ${texts(rows.map((one) => hexOf(one.address)))})`;
  const segments = texts(rows.map((one) => one.segment));
  const from = seconds(rows.map((one) => one.fromMinute));
  const to = seconds(rows.map((one) => one.toMinute));
  const epochs = numbers(rows.map((one) => one.epoch));
  const verdicts = numbers(
    rows.map((one) => (one.isForeign ? 1 : 0)),
    'UInt8',
  );
  // The newest span that the row does not know: its epoch, doubled, and its verdict in the last bit.
  return (address) => ch`if((capture_id, ${plain(address)}, toString(segment)) in
      (select arrayJoin(arrayZip(${captures}, ${addresses}, ${segments}))),
    (arrayMax((c, a, s, f, t, e, v) -> if(c = capture_id and a = ${plain(address)} and s = segment
        and f <= toUnixTimestamp(minute) and t >= toUnixTimestamp(minute) and e > verdict_epoch, toUInt64(e) * 2 + v, 0),
      ${captures}, ${addresses}, ${segments}, ${from}, ${to}, ${epochs}, ${verdicts}) as newest_verdict) = 0
      and is_foreign or newest_verdict % 2 = 1,
    is_foreign)`;
}

export const hexOf = (address: string): string => Buffer.from(parseAddress(address)!).toString('hex');
export const addressOf = (hex: string): string => formatAddress(Buffer.from(hex, 'hex'));

/** Writes spans for verdicts that changed; returns the days that they touch. */
export async function rejudgeAddresses(
  engine: Engine,
  trx: Queryable,
  changed: readonly ChangedAddress[],
): Promise<SiteDay[]> {
  if (changed.length === 0) return [];
  const days: SiteDay[] = [];
  const { epoch, siteIds } = await beginEpoch(trx);
  const oldest = (await readNowMs(trx)) / 1000 - rejudgedSeconds;
  for (let i = 0; i < changed.length; i += batchSize) {
    const batch = changed.slice(i, i + batchSize);
    const told = await findTold(engine, siteIds, batch, oldest);
    const spans = await findFlips(trx, told);
    await writeSpans(trx, spans, epoch);
    for (const { siteId, fromMinute, toMinute } of spans)
      for (let day = dayOf(fromMinute); day <= toMinute; day += daySeconds) days.push({ siteId, day });
  }
  return days;
}

/** An address's rows of a capture, segment and minute. */
interface ReportedRows {
  siteId: number;
  captureId: number;
  sensorId: number;
  capture: string;
  address: string;
  segment: string;
  minute: number;
  /** Epochs and verdicts of its rows, each twice the epoch and the verdict in the last bit. */
  own: number[];
}

async function findTold(
  engine: Engine,
  siteIds: readonly number[],
  changed: readonly ChangedAddress[],
  oldest: number,
): Promise<ReportedRows[]> {
  const since = changed.map((one) => Math.max(Number.isFinite(one.since) ? one.since : 0, oldest) - 60);
  const hexes = changed.map((one) => hexOf(one.address));
  const part = (table: string, column: string) => ch`
    select site_id, capture_id, sensor_id, capture, ${plain(column)} as told, segment, minute,
      toUInt64(verdict_epoch) * 2 + is_foreign as own
    from ${plain(table)} inner join
      (select tupleElement(given, 1) as told_address, tupleElement(given, 2) as since
       from (select arrayJoin(arrayZip(arrayMap(h -> unhex(h), ${texts(hexes)}), ${seconds(since)})) as given)) g
      on ${plain(column)} = g.told_address
    where site_id in ${numbers(siteIds)} and ${plain(column)} in (select arrayJoin(arrayMap(h -> unhex(h), ${texts(hexes)})))
      and toUnixTimestamp(minute) >= g.since`;
  const rows = await engine.rows<Omit<ReportedRows, 'address'> & { hex: string }>(ch`
    select site_id as siteId, capture_id as captureId, sensor_id as sensorId, toString(any(t.capture)) as capture,
      hex(told) as hex, toString(segment) as segment, toUnixTimestamp(minute) as minute, groupUniqArray(own) as own
    from (${part('host_minutes', 'address')} union all ${part('application_facts', 'local')}) t
    group by siteId, captureId, sensorId, told, t.segment, t.minute
    order by captureId, hex, segment, minute`);
  return rows.map(({ hex, ...row }) => ({ ...row, address: addressOf(hex) }));
}

/** Spans of one verdict each, of those keys and minutes that have another one by now. */
async function findFlips(
  trx: Queryable,
  told: readonly ReportedRows[],
): Promise<Omit<VerdictSpan, 'epoch'>[]> {
  if (told.length === 0) return [];
  const spoken = new Map(
    told.map(({ sensorId, address }) => [`${sensorId} ${address}`, { sensorId, subject: address }]),
  );
  const check = await checkAddresses(trx, [...spoken.values()]);
  const existing = Map.groupBy(
    await findSpans(trx, unique(told.map((one) => one.siteId)), unique(told.map((one) => one.address))),
    keyOf,
  );
  return [...Map.groupBy(told, keyOf)].flatMap(([key, ofKey]) => {
    const spans: (Omit<VerdictSpan, 'epoch'> & { isNeeded: boolean })[] = [];
    for (const one of ofKey) {
      const { siteId, captureId, address, segment, minute } = one;
      const isForeign = judge(check, one);
      const isNeeded = verdictsOf(one, existing.get(key) ?? []).some((was) => was !== isForeign);
      const last = spans.at(-1);
      if (last?.isForeign === isForeign) {
        last.toMinute = minute;
        last.isNeeded ||= isNeeded;
      } else {
        const span = { siteId, captureId, address, segment, fromMinute: minute, toMinute: minute };
        spans.push({ ...span, isForeign, isNeeded });
      }
    }
    return spans.filter((span) => span.isNeeded);
  });
}

const keyOf = ({ captureId, address, segment }: Pick<ReportedRows, 'captureId' | 'address' | 'segment'>) =>
  `${captureId} ${address} ${segment}`;

const judge = (check: ForeignCheck, { sensorId, address, minute, segment, capture }: ReportedRows) =>
  check(sensorId, address, minute, segment === '' ? undefined : [segment, capture]);

/** What reads take the rows for. */
function verdictsOf({ own, minute }: ReportedRows, spans: readonly VerdictSpan[]): boolean[] {
  return own.map((packed) => {
    const known = Math.floor(packed / 2);
    const newer = spans.findLast(
      (span) => span.epoch > known && span.fromMinute <= minute && span.toMinute >= minute,
    );
    return newer?.isForeign ?? packed % 2 === 1;
  });
}

const unique = <T>(all: readonly T[]): T[] => [...new Set(all)];
