/** Rankings of what addresses did: the values of a dimension, in the wanted order. */
import type { RankedDimension, RankedValue, Ranking, RankOrder } from './exploration.ts';
import * as store from './explorer-store.ts';
import { rowOrder, sizeOf, sumOf } from './rank-values.ts';
import type { Name, ServerDimension } from './traffic-names.ts';
import { addressesOfServer, type UsageReading } from './usage-reading.ts';
import { addUp, previousOf, previousPacketsOf, type UsageSum } from './usage-sums.ts';

export interface RankOptions {
  limit: number;
  order?: RankOrder;
  isAscending?: boolean;
  hasPercentiles?: boolean;
}

/** Rows that one statement of a page may read of minutes or tens before it takes the next coarser sums. */
export const rowsMax = 150_000;
/** Whether the minutes of so many servers are few enough to be read one by one. */
export const hasFewMinutes = ({ ask }: UsageReading, servers: number, most: number) =>
  (servers * addressesOfServer * (ask.toMs - ask.fromMs)) / 60_000 <= most;

export async function rankUsage(
  reading: UsageReading,
  dimension: RankedDimension,
  { limit, order = 'total', isAscending = false, hasPercentiles = false }: RankOptions,
): Promise<Ranking> {
  const values = await readValues(reading, dimension);
  const { measure } = reading;
  const wanted = hasPercentiles && dimension === 'server';
  // To be in the order of percentiles all of them are needed, otherwise those of the rows that are shown.
  const isFirst = wanted && order === 'p95';
  const ordered = [...(isFirst ? await withPercentiles(reading, values) : values)].sort(
    rowOrder(order, isAscending, measure),
  );
  const shown = ordered.slice(0, limit);
  const others = ordered.slice(limit);
  return {
    dimension,
    rows: wanted && !isFirst ? [...(await withPercentiles(reading, shown))] : shown,
    others: {
      count: others.length,
      inboundBytes: sumOf(others, (row) => row.inboundBytes),
      outboundBytes: sumOf(others, (row) => row.outboundBytes),
      packets: others.some(({ packets }) => packets !== null)
        ? sumOf(others, (row) => row.packets ?? 0)
        : null,
    },
    unnamed: null,
  };
}

/** Percentiles are of minutes: without them where there are too many servers for the range. */
async function withPercentiles(
  reading: UsageReading,
  rows: readonly RankedValue[],
): Promise<readonly RankedValue[]> {
  const { db, scope, ask, directions } = reading;
  const serverIds = rows.flatMap((row) => row.serverId ?? []);
  if (serverIds.length === 0 || !hasFewMinutes(reading, serverIds.length, 4 * rowsMax)) return rows;
  const range = { ...ask, hasPackets: false };
  const read = await store.listMinutePercentiles(db, { ...scope, serverIds }, range, 'server');
  const found = new Map(read.map((each) => [each.serverId, each]));
  return rows.map((row) => {
    const of = found.get(row.serverId);
    return {
      ...row,
      inboundP95: directions.in ? (of?.inboundP95 ?? null) : null,
      outboundP95: directions.out ? (of?.outboundP95 ?? null) : null,
    };
  });
}

/** The values of a dimension, which a chart and its table share. */
function readValues(reading: UsageReading, dimension: RankedDimension): Promise<readonly RankedValue[]> {
  const known = reading.values.get(dimension);
  if (known !== undefined) return known;
  const read = makeValues(reading, dimension);
  reading.values.set(dimension, read);
  return read;
}

async function makeValues(reading: UsageReading, dimension: RankedDimension): Promise<RankedValue[]> {
  const { names, measure, directions, sums } = reading;
  const values: RankedValue[] = [];
  const add = (name: Name, sum: UsageSum) => {
    const inboundBytes = directions.in ? sum.inboundBytes : 0;
    const outboundBytes = directions.out ? sum.outboundBytes : 0;
    if (inboundBytes + outboundBytes === 0) return;
    // There is one for each server: written out, they are made in a third of the time that spread parts take.
    values.push({
      value: name.value,
      label: name.label,
      service: null,
      serverId: name.serverId,
      tenantId: name.tenantId,
      inboundBytes,
      outboundBytes,
      packets: sum.packets,
      share: null,
      previousBytes: previousOf(reading, sum),
      previousPackets: previousPacketsOf(sum),
      lastSentAt: null,
      inboundP95: null,
      outboundP95: null,
    });
  };
  if (dimension === 'address') {
    for (const sum of await sums.address()) {
      const { serverId, address } = sum;
      const tenantId = names.server(serverId)?.tenantId ?? null;
      add({ value: address, label: address, serverId, tenantId }, sum);
    }
  } else {
    const of = dimension as ServerDimension;
    const rows = await sums.server();
    const groups = of === 'server' ? rows : addUp(rows, ({ serverId }) => names.of(of, serverId).value);
    for (const sum of groups) add(names.of(of, sum.serverId), sum);
  }
  const all = sumOf(values, (row) => sizeOf(row, measure));
  const isSized = (row: RankedValue) => all > 0 && (measure === 'bytes' || row.packets !== null);
  for (const row of values) row.share = isSized(row) ? sizeOf(row, measure) / all : null;
  return values;
}
