import type { FastifyRequest } from 'fastify';
import type { NodeServer } from '#monitor/inventory/index.ts';
import type { LiveRate } from '#monitor/live/index.ts';
import type { KnownCondition } from '#monitor/sensors/index.ts';
import { leftOutOf, type SectionCount } from '#monitor/sensors/index.ts';
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
  moment,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  dataTable,
  figureColumn,
  momentColumn,
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
function lossOf(capture: CaptureState): number | null {
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
  }: { rates: readonly LiveRate[]; conditions: readonly KnownCondition[]; nowMs: number },
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
      { key: 'reason', header: 'Reason', cell: gapReason, value: (row) => row.reason },
    ],
    empty: { title: 'No gaps', text: 'All minutes of the last 24 hours have arrived.' },
  });
}

/** Text for an unknown value in a table. */
export const untold = html`<span class="unknown">unknown</span>`;

// The plan of a sensor, and the servers of its node in the last import of the inventory.

/** Maximum number of servers on the page and in files. */
export const nodeServersMax = 200;

export function planSection(request: FastifyRequest, plan: readonly SectionCount[]) {
  return section(
    {
      id: 'plan',
      title: 'Plan',
      description: 'Lists that the sensor fetches every 30 seconds. Entries above the limit are left out.',
    },
    dataTable<SectionCount>(request, {
      id: 'plan',
      caption: 'Plan',
      card: { line: ['entries', 'left'] },
      rows: plan,
      columns: [
        { key: 'list', header: 'List', cell: (row) => row.label, value: (row) => row.label },
        countColumn('entries', 'Entries', (row) => row.entries),
        countColumn('max', 'At most', (row) => row.entriesMax),
        textColumn('left', 'Left out', leftOutOf, {
          field: 'left_out',
          show: (leftOut) => (leftOut > 0 ? badge('warn', formatCount(leftOut)) : 'none'),
        }),
      ],
      empty: { title: 'Empty', text: 'The plan is empty.' },
    }),
  );
}

export function nodeServersSection(
  request: FastifyRequest,
  node: string,
  { rows, isComplete }: { rows: readonly NodeServer[]; isComplete: boolean },
  nowMs: number,
) {
  return section(
    {
      id: 'servers',
      title: 'Servers of its node',
      description: `Servers on ${node} with the time of the last import that listed them.`,
    },
    [
      dataTable<NodeServer>(request, {
        id: 'servers',
        caption: 'Servers of its node',
        card: { line: ['state', 'addresses'] },
        rows,
        isComplete,
        columns: [
          { key: 'name', header: 'Server', cell: (row) => row.name, value: (row) => row.name },
          { key: 'state', header: 'State', cell: (row) => row.state, value: (row) => row.state },
          {
            key: 'addresses',
            header: 'Addresses',
            kind: 'code',
            cell: (row) => row.addresses.join(', ') || 'none',
            value: (row) => row.addresses.join(' '),
          },
          momentColumn('seen', 'Listed', (row) => row.seenAtMs, nowMs, { field: 'listed_at' }),
          {
            key: 'interfaces',
            header: 'Interfaces listed',
            cell: (row) => (row.interfacesSeenAtMs === null ? 'none' : moment(row.interfacesSeenAtMs, nowMs)),
            field: 'interfaces_listed_at',
            value: (row) => (row.interfacesSeenAtMs === null ? null : isoTime(row.interfacesSeenAtMs)),
          },
        ],
        empty: { title: 'None', text: 'The inventory has no servers on this node.' },
      }),
      isComplete ? null : html`<p class="hint">More are not shown.</p>`,
    ],
  );
}
