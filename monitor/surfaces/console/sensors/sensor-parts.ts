/** Tables of sensors, for the list and for one sensor's page. */
import type { FastifyRequest } from 'fastify';
import type { LiveRate } from '#monitor/live/index.ts';
import type { KnownCondition } from '#monitor/sensors/index.ts';
import type { CaptureState, GapRow } from '#monitor/traffic/index.ts';
import {
  badge,
  type Content,
  formatAge,
  formatBitRate,
  formatCount,
  formatPercent,
  html,
  isoTime,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  pagedRows,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import { gapReason } from '../parts/words.ts';

/** A sensor reports about twice a minute; an older report says nothing about the present state. */
const conditionFreshMs = 300_000;

/** The condition if it is recent. */
export function freshCondition(
  conditions: readonly KnownCondition[],
  sensorId: number,
  nowMs: number,
): KnownCondition | null {
  const found = conditions.find((one) => one.sensorId === sensorId);
  return found && nowMs - found.receivedAtMs < conditionFreshMs ? found : null;
}

export function spoolShareOf(condition: KnownCondition): number {
  return condition.spoolPendingBytes / Math.max(1, condition.spoolBytesMax);
}

export function diskShareOf(condition: KnownCondition): number {
  return 1 - condition.diskFreeBytes / Math.max(1, condition.diskBytes);
}

/** A fill level, marked from `warnFrom` on. */
export function fillText(share: number, warnFrom: number): Content {
  return share >= warnFrom ? badge('warn', formatPercent(share)) : formatPercent(share);
}

/** Part of all packets that was lost. */
export function lossOf(capture: CaptureState): number | null {
  const seen = capture.packets + capture.kernelDropped;
  return seen > 0 ? (capture.kernelDropped + capture.parserDropped) / seen : null;
}

const capturesShown = 50;

export function captureTable(
  request: FastifyRequest,
  captures: readonly CaptureState[],
  {
    rates,
    conditions,
    nowMs,
  }: {
    rates: readonly LiveRate[];
    conditions: readonly KnownCondition[];
    nowMs: number;
  },
) {
  const countedBy = ({ sensorId, name }: CaptureState) => {
    const told = freshCondition(conditions, sensorId, nowMs)?.captures?.find((one) => one.name === name);
    if (told?.isCountedInKernel === undefined) return null;
    return told.isCountedInKernel ? 'in the kernel' : 'frame by frame';
  };
  const rateOf = (row: CaptureState) => {
    const rate = rates.find((one) => one.sensorId === row.sensorId && one.capture === row.name);
    return rate ? (rate.ipBytes * 8000) / rate.observedMs : null;
  };
  const listened = (row: CaptureState) => Math.min(1, row.observedMs / 3_600_000);
  const count = (key: string, header: string, value: (row: CaptureState) => number, tone?: Tone) => ({
    key,
    header,
    kind: 'figure' as const,
    cell: (row: CaptureState) =>
      tone && value(row) > 0 ? badge(tone, formatCount(value(row))) : formatCount(value(row)),
    value,
  });
  return dataTable<CaptureState>(request, {
    ...pagedRows(request, 'captures', captures, capturesShown),
    caption: 'Captures',
    card: { line: ['role', 'live', 'newest'] },
    columns: [
      { key: 'name', header: 'Capture', kind: 'code', cell: (row) => row.name, value: (row) => row.name },
      { key: 'host', header: 'Host', cell: (row) => row.hostName, value: (row) => row.hostName },
      { key: 'role', header: 'Role', cell: (row) => row.role, value: (row) => row.role },
      { key: 'counted', header: 'Counted', cell: countedBy, value: countedBy },
      figureColumn('live', 'Right now', rateOf, (rate) => (rate === null ? null : formatBitRate(rate)), {
        field: 'bps',
      }),
      {
        key: 'newest',
        header: 'Newest minute',
        kind: 'figure',
        cell: (row) =>
          row.newestMinute === null ? null : `ended ${formatAge(row.newestMinute * 1000 + 60_000, nowMs)}`,
        value: (row) => (row.newestMinute === null ? null : isoTime(row.newestMinute * 1000)),
      },
      figureColumn('listened', 'Listened', listened, formatPercent),
      count('packets', 'Packets', (row) => row.packets),
      {
        key: 'loss',
        header: 'Loss',
        kind: 'figure',
        field: 'lost_share',
        cell: (row) => {
          const share = lossOf(row);
          if (share === null) return null;
          return share >= 0.01 ? badge('bad', formatPercent(share, 2)) : formatPercent(share, 2);
        },
        value: lossOf,
      },
      count('kernel_dropped', 'Lost in kernel', (row) => row.kernelDropped, 'warn'),
      count('parser_dropped', 'Not parsed', (row) => row.parserDropped, 'warn'),
      count('detail_truncated', 'Without detail', (row) => row.detailTruncated, 'warn'),
    ],
    empty: { title: 'No captures yet', text: 'Captures appear with the first minute of a sensor.' },
  });
}

export function gapTable(request: FastifyRequest, rows: readonly GapRow[]) {
  const minutes = (row: GapRow) => (row.toMinute - row.fromMinute) / 60 + 1;
  return dataTable<GapRow>(request, {
    id: 'gaps',
    caption: 'Gaps',
    card: { line: ['minutes', 'reason'] },
    rows,
    columns: [
      timeColumn('from', 'From', (row) => row.fromMinute * 1000),
      countColumn('minutes', 'Minutes', minutes),
      textColumn('capture', 'Capture', (row) => row.capture, {
        show: (capture) => (capture === '' ? 'all' : capture),
      }),
      {
        key: 'reason',
        header: 'Reason',
        cell: gapReason,
        value: (row) => row.reason,
      },
    ],
    empty: {
      title: 'No gaps',
      text: 'All minutes of the last 24 hours have arrived.',
    },
  });
}

/** Text for an unknown value in a table. */
export const untold = html`<span class="unknown">unknown</span>`;
