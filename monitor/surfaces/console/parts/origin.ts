/** The sources of a number: every capture's count of an address in a minute, the chosen one, and the reason. */
import type { FastifyRequest } from 'fastify';
import type { KeptUpload } from '#monitor/inbox/index.ts';
import type { Provenance } from '#monitor/traffic/index.ts';
import { badge, formatCount, formatPercent, formatTime, html, isoTime } from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, linkColumn, textColumn } from '#service-kit/web/index.ts';
import { bytesColumns } from './usage-columns.ts';

/** A capture's row with the uploads that contained the minute; none after they were deleted. */
export interface OriginLine extends Provenance {
  uploads: readonly KeptUpload[];
}

const reasonWords: Readonly<Record<NonNullable<Provenance['reason']>, string>> = {
  only: 'the only capture with it',
  most_bytes: 'it saw the most bytes',
  longest: 'equal bytes, longer observed',
  uplink: 'equal bytes, it is the uplink',
  first: 'equal bytes, first by name',
};

/** A minute in URLs of pages. */
export function minuteText(minute: number): string {
  return `${new Date(minute * 1000).toISOString().slice(0, 16)}Z`;
}

/** The minute in a URL; null for other text. */
export function readMinute(text: string | undefined): number | null {
  if (!text || !/^\d{4}-\d\d-\d\dT\d\d:\d\dZ?$/.test(text)) return null;
  const ms = Date.parse(`${text.replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? null : ms / 1000;
}

/** The captures of one or a few minutes, the chosen one of each first. */
export function originTable(request: FastifyRequest, siteId: number, rows: readonly OriginLine[]) {
  return dataTable<OriginLine>(request, {
    id: 'origin',
    caption: 'Captures that counted it',
    card: { line: ['chosen', 'role'] },
    refreshSeconds: 60,
    rows,
    rowTone: (row) => (row.isChosen ? 'good' : undefined),
    columns: [...captureColumns(siteId), ...bytesColumns, ...countColumns],
    fields: [
      { field: 'spool_id', value: (row) => [...new Set(row.uploads.map((one) => one.spoolId))].join(' ') },
      { field: 'reason', value: (row) => (row.isForeign ? 'foreign' : row.reason) },
      { field: 'observed_ms', value: (row) => row.observedMs },
      { field: 'device_key', value: (row) => row.deviceKey },
    ],
    empty: {
      title: 'No capture counted it',
      text: 'No capture saw packets of the address in this minute. It was idle, or there was no capture.',
    },
  });
}

/** Which capture it was, whether it counts, and how much of the minute it observed. */
const captureColumns = (siteId: number): DataColumn<OriginLine>[] => [
  linkColumn('sensor', 'Sensor', (row) => [row.hostName, `/sites/${siteId}/sensors/${row.sensorId}`]),
  textColumn('capture', 'Capture', (row) => row.capture, { kind: 'code' }),
  { key: 'role', header: 'At', cell: (row) => row.role, value: (row) => row.role },
  {
    key: 'chosen',
    header: 'Counts',
    cell: (row) =>
      row.isChosen
        ? html`${badge('good', 'chosen')} ${row.reason ? reasonWords[row.reason] : ''}`
        : row.isForeign
          ? badge('warn', 'foreign: the address belongs to another node')
          : html`<span class="hint">same packets, not added</span>`,
    field: 'is_chosen',
    value: (row) => row.isChosen,
  },
  {
    key: 'window',
    header: 'Window',
    cell: (row) =>
      row.observedMs >= 60_000
        ? html`${formatTime(row.minute * 1000).slice(11)}, the whole minute`
        : html`${formatTime(row.minute * 1000).slice(11)}, ${formatPercent(row.observedMs / 60_000, 0)} of the minute`,
    field: 'minute',
    value: (row) => isoTime(row.minute * 1000),
  },
];

/** Packets, losses, and the upload that contained them. */
const countColumns: DataColumn<OriginLine>[] = [
  {
    key: 'packets',
    header: 'Packets',
    kind: 'figure',
    cell: (row) =>
      row.mergedFrames > 0 ? html`<span class="unknown">merged by offload</span>` : formatCount(row.packets),
    value: (row) => (row.mergedFrames > 0 ? null : row.packets),
  },
  {
    key: 'lost',
    header: 'Lost at the capture',
    kind: 'figure',
    cell: (row) => {
      const lost = row.kernelDropped + row.parserDropped;
      return lost === 0 ? 'none' : badge('warn', formatCount(lost));
    },
    field: 'lost_packets',
    value: (row) => row.kernelDropped + row.parserDropped,
  },
  {
    key: 'upload',
    header: 'Upload',
    kind: 'figure',
    cell: (row) =>
      row.uploads.length === 0
        ? html`<span class="hint">kept two days</span>`
        : row.uploads.map((one) => `#${one.sequence}`).join(', '),
    field: 'upload_sequences',
    value: (row) => row.uploads.map((one) => one.sequence).join(' '),
  },
];
