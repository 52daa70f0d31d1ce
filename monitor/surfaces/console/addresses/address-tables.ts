/** The tables on an address's page. */
import type { FastifyRequest } from 'fastify';
import type { AddressOwner } from '#monitor/devices/index.ts';
import type { AddressUse } from '#monitor/facts/index.ts';
import type { AddressMinute } from '#monitor/traffic/index.ts';
import type { Range } from '#service-kit/pages/index.ts';
import {
  badge,
  code,
  formatBitRate,
  formatCount,
  formatPercent,
  formatTime,
  html,
  isoTime,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';
import { dataTable, figureColumn, momentColumn, textColumn, wantedFile } from '#service-kit/web/index.ts';
import { namedHref } from '../parts/application-detail.ts';
import { minuteText } from '../parts/origin.ts';
import { evidenceColumn, exchangedColumns, lastSentColumn, serviceColumn } from '../parts/usage-columns.ts';

const pointsShown = 60;
const applicationsShown = 50;

export function applicationTable(
  request: FastifyRequest,
  siteId: number,
  all: readonly AddressUse[],
  nowMs: number,
) {
  const shown = wantedFile(request) ? all : all.slice(0, applicationsShown);
  return dataTable<AddressUse>(request, {
    id: 'applications',
    caption: 'Applications of this address',
    card: { line: ['in', 'out', 'direction'] },
    rows: shown,
    columns: [
      {
        key: 'name',
        header: 'Application',
        cell: (row) =>
          link(namedHref(request, siteId, row.name), row.isAttributed ? row.name : code(row.name)),
        value: (row) => row.name,
      },
      serviceColumn,
      textColumn('direction', 'Direction', (row) => row.direction, {
        show: (direction) => (direction === 'outbound' ? 'used' : 'hosted'),
      }),
      evidenceColumn,
      ...exchangedColumns(() => 'name only'),
      lastSentColumn(nowMs),
    ],
    pages:
      all.length > shown.length
        ? { label: `The ${shown.length} largest of ${formatCount(all.length)}` }
        : undefined,
    empty: { title: 'No applications', text: 'No application of this address was captured in this time.' },
  });
}

export function ownerTable(
  request: FastifyRequest,
  siteId: number,
  owners: readonly AddressOwner[],
  nowMs: number,
) {
  return dataTable<AddressOwner>(request, {
    id: 'owners',
    caption: 'Owners of this address',
    card: { line: ['state', 'last', 'mac'] },
    rows: owners,
    columns: [
      {
        key: 'device',
        header: 'Device',
        cell: (row) => link(`/sites/${siteId}/devices/${row.deviceId}`, row.name ?? code(row.mac)),
        value: (row) => row.name,
      },
      { key: 'mac', header: 'MAC', kind: 'code', cell: (row) => row.mac, value: (row) => row.mac },
      {
        key: 'state',
        header: 'State',
        cell: (row) => (row.endedAtMs === null ? badge('good', 'owner') : badge('neutral', 'former')),
        field: 'ended',
        value: (row) => isoTime(row.endedAtMs),
      },
      momentColumn('first', 'From', (row) => row.firstSeenMs, nowMs, { field: 'first_seen' }),
      momentColumn('last', 'Last seen', (row) => row.lastSeenMs, nowMs, { field: 'last_seen' }),
    ],
    empty: {
      title: 'Unknown owner',
      text: 'No sensor saw the device of this address on its segment. Its traffic is missing from per-device values.',
    },
  });
}

/** Newest first; files have every point. */
export function pointTable(request: FastifyRequest, points: readonly AddressPoint[], range: Range) {
  const shown = points.toReversed().slice(0, wantedFile(request) ? points.length : pointsShown);
  const isMinute = range.stepSeconds === 60;
  const inside = (point: AddressPoint) =>
    isMinute
      ? `${withQuery(request.url, { at: minuteText(point.timeMs / 1000) })}#origin`
      : withQuery(request.url, {
          range: 'custom',
          from: minuteText(point.timeMs / 1000),
          to: minuteText(point.timeMs / 1000 + range.stepSeconds),
          at: undefined,
        });
  return dataTable<AddressPoint>(request, {
    id: 'points',
    caption: isMinute ? 'Minutes of this address' : 'Steps of this address',
    card: { line: ['in', 'out'] },
    rows: shown,
    columns: [
      {
        key: 'time',
        header: 'From',
        cell: (row) =>
          link(inside(row), formatTime(row.timeMs), { label: `${formatTime(row.timeMs)}, sources` }),
        value: (row) => isoTime(row.timeMs),
      },
      figureColumn('in', 'In', (row) => row.inBps, rate, { field: 'in_bps' }),
      figureColumn('out', 'Out', (row) => row.outBps, rate, { field: 'out_bps' }),
      {
        key: 'packets',
        header: 'Packets',
        kind: 'figure',
        cell: (row) => (row.observed === 0 || row.packets === null ? null : formatCount(row.packets)),
        value: (row) => (row.observed === 0 ? null : row.packets),
      },
      {
        key: 'coverage',
        header: 'Coverage',
        kind: 'figure',
        cell: (row) =>
          row.observed === 0 && row.gaps === 0
            ? html`<span class="hint">in progress</span>`
            : row.observed === 0
              ? badge('warn', 'not observed')
              : row.gaps > 0
                ? badge('warn', `${formatCount(row.gaps)} min missing`)
                : row.coverage === null
                  ? null
                  : formatPercent(row.coverage, 0),
        value: (row) => (row.observed === 0 ? 0 : row.coverage),
      },
    ],
    fields: [
      { field: 'in_bytes', value: (row) => (row.observed === 0 ? null : row.inBytes) },
      { field: 'out_bytes', value: (row) => (row.observed === 0 ? null : row.outBytes) },
      { field: 'minutes_observed', value: (row) => row.observed },
      { field: 'minutes_missing', value: (row) => row.gaps },
    ],
    pages:
      points.length > shown.length
        ? { label: `Showing ${shown.length} of ${formatCount(points.length)}. Export for the full list` }
        : undefined,
    empty: { title: 'Nothing yet', text: 'This range is in the future.' },
  });
}

function rate(bps: number | null) {
  return bps === null ? html`<span class="unknown">unknown</span>` : formatBitRate(bps);
}

// An address's minutes as points of a chart: minutes for one day, coarser steps for longer ranges.

/** One step. Rates are means over its observed minutes; null without one. */
export interface AddressPoint {
  timeMs: number;
  inBps: number | null;
  outBps: number | null;
  inBytes: number;
  outBytes: number;
  /** The part of these bytes that the sensors' own port scans caused. */
  ownScan: { inBytes: number; outBytes: number };
  /** What filters dropped beside them. */
  dropped: { inBytes: number; outBytes: number };
  /** Null when offload merged an unknown number of packets. */
  packets: number | null;
  observed: number;
  /** Minutes that were not observed; zero for a step in progress. */
  gaps: number;
  /** The lowest of its minutes; null when one is unknown. */
  coverage: number | null;
}

/** A minute that ended more recently may still arrive. */
const arrivesWithinMs = 90_000;

/** The steps of a range up to now. Future minutes and minutes that may still arrive are not gaps. */
export function pointsOf(minutes: readonly AddressMinute[], range: Range, nowMs: number): AddressPoint[] {
  const stepMs = range.stepSeconds * 1000;
  const points = new Map<number, AddressPoint>();
  for (let timeMs = range.fromMs; timeMs < Math.min(range.toMs, nowMs); timeMs += stepMs) {
    points.set(timeMs, {
      timeMs,
      inBps: null,
      outBps: null,
      inBytes: 0,
      outBytes: 0,
      ownScan: { inBytes: 0, outBytes: 0 },
      dropped: { inBytes: 0, outBytes: 0 },
      packets: 0,
      observed: 0,
      gaps: 0,
      coverage: 1,
    });
  }
  for (const minute of minutes) {
    const point = points.get(Math.floor((minute.minute * 1000) / stepMs) * stepMs);
    if (point) addMinute(point, minute, (minute.minute + 60) * 1000 + arrivesWithinMs > nowMs);
  }
  for (const point of points.values()) {
    if (point.observed === 0) continue;
    point.inBps = (point.inBytes * 8) / (point.observed * 60);
    point.outBps = (point.outBytes * 8) / (point.observed * 60);
  }
  return [...points.values()];
}

function addMinute(point: AddressPoint, minute: AddressMinute, mayArrive: boolean): void {
  if (minute.isGap) {
    if (!mayArrive) point.gaps += 1;
    return;
  }
  point.observed += 1;
  point.inBytes += minute.rxBytes;
  point.outBytes += minute.txBytes;
  point.ownScan.inBytes += minute.ownScan?.rxBytes ?? 0;
  point.ownScan.outBytes += minute.ownScan?.txBytes ?? 0;
  point.dropped.inBytes += minute.dropped?.rxBytes ?? 0;
  point.dropped.outBytes += minute.dropped?.txBytes ?? 0;
  point.packets = point.packets === null || minute.packets === null ? null : point.packets + minute.packets;
  point.coverage =
    point.coverage === null || minute.coverage === null ? null : Math.min(point.coverage, minute.coverage);
}
