/** Rankings of what addresses did: the values of a dimension, in the wanted order. */
import type { Amount, Measure } from '#service-kit/explorer/index.ts';
import type { RankedDimension, RankedValue, Ranking, RankOrder } from './exploration.ts';
import * as store from './explorer-store.ts';
import { firstOf, rowOrder, sizeOf, sumOf } from './rank-values.ts';
import type { Name, ServerDimension } from './traffic-names.ts';
import { addressesOfServer, type RankableSum, type Rankables, type UsageReading } from './usage-reading.ts';
import { addUp, previousOf, type UsageSum } from './usage-sums.ts';

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
  { limit, order = 'share', isAscending = false, hasPercentiles = false }: RankOptions,
): Promise<Ranking> {
  const all = await readRankables(reading, dimension);
  const { measure } = reading;
  const byOrder = rowOrder(order, isAscending, measure);
  const toValues = (rows: readonly RankableSum[]) => rows.map((row) => toValue(row, all, measure));
  const wanted = hasPercentiles && dimension === 'server';
  // To be in the order of percentiles all of them are needed, otherwise those of the rows that are shown.
  const isFirst = wanted && order === 'p95';
  const shown = isFirst
    ? firstOf(await withPercentiles(reading, toValues(all.rows)), limit, byOrder)
    : toValues(firstOf(all.rows, limit, byOrder));
  const shownWithPackets = shown.filter(({ packets }) => packets !== null).length;
  const allWithPackets = all.rows.reduce((count, { packets }) => count + (packets === null ? 0 : 1), 0);
  return {
    dimension,
    rows: wanted && !isFirst ? [...(await withPercentiles(reading, shown))] : shown,
    others: {
      count: all.rows.length - shown.length,
      inboundBytes: all.inboundBytes - sumOf(shown, (row) => row.inboundBytes),
      outboundBytes: all.outboundBytes - sumOf(shown, (row) => row.outboundBytes),
      packets:
        allWithPackets > shownWithPackets ? all.packets - sumOf(shown, (row) => row.packets ?? 0) : null,
    },
    unnamed: null,
    ownScans: null,
  };
}

function toValue(row: RankableSum, all: Rankables, measure: Measure): RankedValue {
  const isSized = all.size > 0 && (measure === 'bytes' || row.packets !== null);
  return {
    ...row.name,
    service: null,
    inboundBytes: row.inboundBytes,
    outboundBytes: row.outboundBytes,
    packets: row.packets,
    share: isSized ? sizeOf(row, measure) / all.size : null,
    previous: row.previous,
    lastSentAt: null,
    inboundP95: null,
    outboundP95: null,
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

function readRankables(reading: UsageReading, dimension: RankedDimension): Promise<Rankables> {
  const known = reading.rankables.get(dimension);
  if (known !== undefined) return known;
  const read = makeRankables(reading, dimension);
  reading.rankables.set(dimension, read);
  return read;
}

async function makeRankables(reading: UsageReading, dimension: RankedDimension): Promise<Rankables> {
  const { measure, sums, names } = reading;
  const nameOf = namerOf(reading, dimension);
  const groups =
    dimension === 'address'
      ? await sums.address()
      : dimension === 'server'
        ? await sums.server()
        : addUp(await sums.server(), ({ serverId }) =>
            names.filterValueOf(dimension as ServerDimension, serverId),
          );
  const rows = groups.map((sum) => new SumOfName(reading, sum, nameOf)).filter((row) => row.bytes > 0);
  return {
    rows,
    inboundBytes: sumOf(rows, (row) => row.inboundBytes),
    outboundBytes: sumOf(rows, (row) => row.outboundBytes),
    packets: sumOf(rows, (row) => row.packets ?? 0),
    size: sumOf(rows, (row) => sizeOf(row, measure)),
  };
}

function namerOf({ names }: UsageReading, dimension: RankedDimension): (sum: UsageSum) => Name {
  if (dimension !== 'address') return ({ serverId }) => names.of(dimension as ServerDimension, serverId);
  return ({ serverId, address }) => {
    const tenantId = names.server(serverId)?.tenantId ?? null;
    return { value: address, label: address, serverId, tenantId };
  };
}

class SumOfName implements RankableSum {
  readonly inboundBytes: number;
  readonly outboundBytes: number;
  readonly packets: number | null;
  readonly previous: Amount | null;
  readonly lastSentAt = null;
  readonly outboundP95 = null;
  readonly #sum: UsageSum;
  readonly #nameOf: (sum: UsageSum) => Name;
  #name: Name | null = null;

  constructor(reading: UsageReading, sum: UsageSum, nameOf: (sum: UsageSum) => Name) {
    this.inboundBytes = reading.directions.in ? sum.inboundBytes : 0;
    this.outboundBytes = reading.directions.out ? sum.outboundBytes : 0;
    this.packets = sum.packets;
    this.previous = previousOf(reading, sum);
    this.#sum = sum;
    this.#nameOf = nameOf;
  }

  get bytes(): number {
    return this.inboundBytes + this.outboundBytes;
  }

  get name(): Name {
    this.#name ??= this.#nameOf(this.#sum);
    return this.#name;
  }

  get label(): string {
    return this.name.label;
  }
}
