/** Reads of sites and their captures. */
import { readNowMs } from '#service-kit/postgres/index.ts';
import type * as facts from '../contract/facts.ts';
import { type KnownCapture, listFailed, listKnown } from '../control/capture-store.ts';
import { type Sources, scopeOf } from './address-store.ts';
import type { Engine } from './engine-store.ts';
import { hosts, strongest, within } from './select-store.ts';
import { ch, type Fragment, number, numbers, second } from './statement.ts';

/** The start of a step, in milliseconds. */
export const stepMs = (column: Fragment, stepSeconds: number): Fragment =>
  ch`toFloat64(intDiv(toUnixTimestamp(${column}), ${number(stepSeconds)}) * ${number(stepSeconds)}) * 1000`;

export async function sumSite(
  sources: Sources,
  range: facts.SiteRange & { stepSeconds: number },
): Promise<facts.SiteStep[]> {
  const scope = await scopeOf(sources, range);
  return await sources.engine.rows<facts.SiteStep>(ch`
    with ${hosts(scope)}, ${strongest},
    counted as (select minute, sum(best_rx) as rx, sum(best_tx) as tx, sum(best_packets) as sent, count() as several
      from strongest group by minute),
    minutes as (select distinct minute from captured)
    select ${stepMs(ch`m.minute`, range.stepSeconds)} as timeMs, toFloat64(sum(c.rx)) as rxBytes, toFloat64(sum(c.tx)) as txBytes,
      toFloat64(sum(c.sent)) as packets, toFloat64(max(c.several)) as addresses, toFloat64(count()) as minutes
    from minutes m left join counted c on c.minute = m.minute group by timeMs order by timeMs`);
}

type CaptureSums = Omit<facts.CaptureFacts, 'sensorId' | 'name' | 'role' | 'newestMinute'> & {
  minutes: number;
};

/** What captures collected in minutes from one (inclusive) to another (exclusive). */
async function sumCaptures(
  engine: Engine,
  siteIds: readonly number[],
  fromMinute: number,
  toMinute: number,
): Promise<Map<number, CaptureSums>> {
  const rows = await engine.rows<CaptureSums>(ch`
    select capture_id as captureId, toFloat64(count()) as minutes, toFloat64(sum(one_packets)) as packets,
      toFloat64(sum(one_kernel)) as kernelDropped, toFloat64(sum(one_parser)) as parserDropped,
      toFloat64(sum(one_truncated)) as detailTruncated, toFloat64(sum(one_observed)) as observedMs
    from (select capture_id, minute, sum(packets) as one_packets, sum(kernel_dropped) as one_kernel,
        sum(parser_dropped) as one_parser, sum(detail_truncated) as one_truncated, least(sum(observed_ms), 60000) as one_observed
      from capture_minutes
      where site_id in ${numbers(siteIds)} and minute >= ${second(fromMinute)} and minute < ${second(toMinute)}
      group by capture_id, minute)
    group by captureId`);
  return new Map(rows.map((row) => [row.captureId, row]));
}

const noSums = {
  ...{ minutes: 0, packets: 0, kernelDropped: 0, parserDropped: 0 },
  ...{ detailTruncated: 0, observedMs: 0 },
};
const always = Number.POSITIVE_INFINITY;

/** The newest minute of each capture up to now. */
async function newestOf(
  { engine, db }: Sources,
  siteIds: readonly number[],
  sinceMinute: number,
): Promise<Map<number, number>> {
  const now = (await readNowMs(db())) / 1000;
  const rows = await engine.rows<{ captureId: number; newest: number }>(ch`
    select capture_id as captureId, toUnixTimestamp(max(minute)) as newest from capture_minutes
    where site_id in ${numbers(siteIds)} and minute >= ${second(sinceMinute)} and minute <= ${second(now)}
    group by captureId`);
  return new Map(rows.map((row) => [row.captureId, row.newest]));
}

export async function listCaptures(
  sources: Sources,
  siteId: number,
  sinceMinute: number,
): Promise<facts.CaptureFacts[]> {
  const known = await listKnown(sources.db(), siteId);
  const sums = await sumCaptures(sources.engine, [siteId], sinceMinute, always);
  const newest = await newestOf(sources, [siteId], 0);
  return known.map(({ captureId, sensorId, name, role }) => {
    const { minutes: _, captureId: __, ...own } = { captureId, ...(sums.get(captureId) ?? noSums) };
    return { captureId, sensorId, name, role, newestMinute: newest.get(captureId) ?? null, ...own };
  });
}

export async function listLosses(
  { engine, db }: Sources,
  fromMinute: number,
  toMinute: number,
): Promise<facts.CaptureLosses[]> {
  const known = await listKnown(db(), null);
  const sums = await sumCaptures(engine, sitesOf(known), fromMinute, toMinute);
  return known.map(({ captureId, sensorId, siteId, name }) => {
    const { minutes, packets, kernelDropped, parserDropped } = sums.get(captureId) ?? noSums;
    return { captureId, sensorId, siteId, name, minutes, packets, kernelDropped, parserDropped };
  });
}

const sitesOf = (known: readonly KnownCapture[]) => [...new Set(known.map((one) => one.siteId))];

export async function listOutages(sources: Sources, sinceMinute: number): Promise<facts.CaptureOutage[]> {
  const known = await listKnown(sources.db(), null);
  const newest = await newestOf(sources, sitesOf(known), sinceMinute);
  const failed = await listFailed(sources.db(), sinceMinute);
  return known.map((one) => ({
    ...one,
    newestMinute: newest.get(one.captureId) ?? null,
    failedThrough: failed.get(one.captureId) ?? null,
  }));
}

export async function sumCollection(engine: Engine, range: facts.SiteRange): Promise<facts.Collection> {
  const rows = await engine.rows<facts.Collection>(ch`
    select toFloat64(uniqExact((minute, capture_id))) as captureMinutes, toFloat64(sum(packets)) as packets,
      toFloat64(sum(kernel_dropped)) as kernelDropped, toFloat64(sum(parser_dropped)) as parserDropped,
      toFloat64(sum(detail_truncated)) as detailTruncated
    from capture_minutes where ${within(range)}`);
  return rows[0]!;
}

export async function newestMinutes({ engine, db }: Sources): Promise<Map<number, number>> {
  const now = (await readNowMs(db())) / 1000;
  const rows = await engine.rows<{ siteId: number; newest: number }>(ch`
    select site_id as siteId, toUnixTimestamp(max(minute)) as newest from capture_minutes
    where site_id > 0 and minute <= ${second(now)} group by siteId`);
  return new Map(rows.map((row) => [row.siteId, row.newest]));
}
