/** Tables of port scans: sensors, open ports, scans. */
import type { FastifyRequest } from 'fastify';
import { ratedSeverities } from '#contracts/findings.ts';
import { describeNote } from '#contracts/port-scan/index.ts';
import { describeService } from '#monitor/applications/index.ts';
import type { Exclusion, ScanAttempt } from '#monitor/scans/index.ts';
import { freshnessOf, type OpenPort, progressOf, type SensorScans } from '#monitor/scans/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { PortFindings } from '#monitor/vulnerabilities/index.ts';
import {
  age,
  badge,
  type Content,
  code,
  formatAge,
  formatCount,
  formatDuration,
  html,
  isoTime,
  link,
  severityBadge,
} from '#service-kit/pages/index.ts';
import {
  ageColumn,
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  linkColumn,
  pagedRows,
  textColumn,
} from '#service-kit/web/index.ts';
import { addressHref } from '../parts/address-link.ts';
import { activeOf } from '../vulnerabilities/counted-tables.ts';
import { serverHref } from '../vulnerabilities/finding-text.ts';

export const attemptsShown = 50;

/** A sensor, what its plan names, and what it leaves out and why. */
export interface ScanningSensor {
  sensor: SensorState;
  /** Null: it never asked for a scan plan. */
  scans: SensorScans | null;
  excluded: string;
}

export function sensorScanTable(request: FastifyRequest, rows: readonly ScanningSensor[], nowMs: number) {
  return dataTable<ScanningSensor>(request, {
    id: 'scanning',
    caption: 'Sensors',
    card: { line: ['plan'] },
    isStacked: true,
    rows,
    isComplete: true,
    columns: [
      linkColumn('sensor', 'Sensor', ({ sensor }) => [
        sensor.hostName,
        `/sites/${sensor.siteId}/sensors/${sensor.id}`,
      ]),
      {
        key: 'plan',
        header: 'Plan',
        cell: ({ scans }) => planBadge(scans, nowMs),
        field: 'plan_age_seconds',
        value: ({ scans }) => scans && Math.round(scans.fetchedAgeSeconds),
      },
      figure('targets', 'Addresses', ({ scans }) => scans?.targets ?? null),
      figure('overdue', 'Overdue', ({ scans }) => scans?.overdue ?? null),
      figure('running', 'Running', ({ scans }) => scans?.running ?? null),
      ageColumn('common', 'Last common scan', ({ scans }) => scans?.lastCommonAtMs ?? null, nowMs, {
        field: 'last_common_at',
      }),
      ageColumn('full', 'Last full scan', ({ scans }) => scans?.lastFullAtMs ?? null, nowMs, {
        field: 'last_full_at',
      }),
      textColumn('excluded', 'Not scanned', ({ excluded }) => excluded, { kind: 'prose' }),
    ],
    empty: { title: 'No sensors yet', text: 'Enrol a sensor under Site settings.' },
  });
}

function figure<Row>(key: string, header: string, read: (row: Row) => number | null): DataColumn<Row> {
  const cell = (row: Row) => {
    const count = read(row);
    return count === null ? 'none' : formatCount(count);
  };
  return { key, header, kind: 'figure', cell, value: read };
}

/** A sensor fetches its plan every few seconds. */
const fetchedWithinSeconds = 300;

function planBadge(scans: SensorScans | null, nowMs: number) {
  if (scans === null) return badge('neutral', 'never fetched: no scans');
  if (scans.fetchedAgeSeconds <= fetchedWithinSeconds) return badge('good', 'up to date');
  return html`${badge('warn', 'not fetched')} ${age(nowMs - scans.fetchedAgeSeconds * 1000, nowMs)}`;
}

/** An open port with the server and the applications that it belongs to. */
export interface PortLine {
  port: OpenPort;
  server: string;
  /** Null: they were not looked up. */
  applications: readonly string[] | null;
  /** Of its assessment; null: it was not assessed yet. */
  findings: PortFindings | null;
}

/** `OpenSSH 9.6p1`; a name that only the port number suggests says so. */
function serviceText({ service, product, version, extraInfo, method, tunnel }: OpenPort): string {
  const known = [product, version, extraInfo && `(${extraInfo})`].filter(Boolean).join(' ');
  const over = tunnel === null ? '' : ` over ${tunnel}`;
  if (known) return `${known}${over}`;
  if (service === null) return 'unknown';
  return method === 'table' ? `unknown, the port is usual for ${service}` : `${service}${over}`;
}

/** The same, with the time of the reading where newer scans saw only the open port. */
function serviceCell(port: OpenPort, nowMs: number): Content {
  const { identifiedAtMs, observedAtMs } = port;
  const isEarlier = identifiedAtMs !== null && identifiedAtMs < observedAtMs;
  return [
    serviceText(port),
    isEarlier && html` <span class="hint">identified ${age(identifiedAtMs, nowMs)}</span>`,
  ];
}

interface PortTable {
  /** Tells the tables of one page apart. */
  id: string;
  caption: string;
  rows: readonly PortLine[];
  shown: number;
  siteId: number;
  nowMs: number;
}

export function portTable(request: FastifyRequest, table: PortTable, empty: { title: string; text: string }) {
  const { id, caption, rows, shown, nowMs } = table;
  return dataTable<PortLine>(request, {
    ...pagedRows(request, id, rows, shown),
    caption,
    card: { line: ['address', 'server', 'service'] },
    isStacked: true,
    columns: portColumns(table),
    fields: [
      { field: 'freshness', value: ({ port }) => freshnessOf(port, nowMs) },
      { field: 'common_observed_at', value: ({ port }) => isoTime(port.commonAtMs) },
      { field: 'full_observed_at', value: ({ port }) => isoTime(port.fullAtMs) },
      { field: 'identified_at', value: ({ port }) => isoTime(port.identifiedAtMs) },
      {
        field: 'usual_service',
        value: ({ port }) => describeService(port.transport === 'tcp' ? 6 : 17, port.port),
      },
    ],
    empty,
  });
}

const portColumns = ({ siteId, nowMs }: PortTable): DataColumn<PortLine>[] => [
  textColumn('port', 'Port', ({ port }) => `${port.transport}/${port.port}`, { show: code }),
  {
    key: 'address',
    header: 'Address',
    cell: ({ port: { address } }) => link(addressHref(siteId, { address, segment: '' }), address),
    value: ({ port }) => port.address,
  },
  { key: 'server', header: 'Server', cell: (row) => row.server, value: (row) => row.server },
  {
    key: 'service',
    header: 'Service',
    kind: 'prose',
    cell: ({ port }) => serviceCell(port, nowMs),
    value: ({ port }) => serviceText(port),
  },
  figureColumn('confidence', 'Sure', ({ port }) => port.confidence, String, { unit: 'of 10' }),
  {
    key: 'applications',
    header: 'Applications',
    cell: ({ applications }) =>
      applications === null ? 'not looked up' : applications.join(', ') || 'none observed',
    value: ({ applications }) => applications?.join(' ') ?? null,
  },
  {
    key: 'findings',
    header: 'Findings',
    cell: (row) => findingsCell(siteId, row),
    field: 'active_findings',
    value: ({ findings }) => (findings === null || findings.isUnable ? null : activeOf(findings)),
  },
  ageColumn('since', 'Open since', ({ port }) => port.firstObservedAtMs, nowMs, {
    field: 'first_observed_at',
  }),
  {
    key: 'seen',
    header: 'Seen',
    kind: 'figure',
    cell: ({ port }) =>
      freshnessOf(port, nowMs) === 'fresh'
        ? age(port.observedAtMs, nowMs)
        : html`${badge('warn', 'stale')} ${age(port.observedAtMs, nowMs)}`,
    field: 'observed_at',
    value: ({ port }) => isoTime(port.observedAtMs),
  },
];

/** Active potential vulnerabilities, with the worst severity. */
function findingsCell(siteId: number, { port, findings }: PortLine) {
  if (findings === null) return html`<span class="hint">not assessed yet</span>`;
  const href = serverHref(siteId, port);
  if (findings.isUnable) return link(`${href}#services`, 'unable to assess', { kind: 'quiet' });
  const active = activeOf(findings);
  if (active === 0) return findings.ignored > 0 ? link(`${href}#ignored`, 'all ignored') : 'none';
  const worst = ratedSeverities.find((rating) => findings[rating] > 0);
  return html`${link(`${href}#findings`, formatCount(active))} ${severityBadge(worst ?? null)}`;
}

/** A scan with the names of its sensor and server. */
export interface AttemptLine {
  attempt: ScanAttempt;
  server: string;
  sensor: string;
}

export function attemptTable(
  request: FastifyRequest,
  siteId: number,
  rows: readonly AttemptLine[],
  isComplete: boolean,
  nowMs: number,
) {
  return dataTable<AttemptLine>(request, {
    id: 'scans',
    caption: 'Scans',
    card: { line: ['scan', 'state', 'started'] },
    isStacked: true,
    rows,
    isComplete,
    columns: attemptColumns(siteId, nowMs),
    fields: [
      { field: 'scan_id', value: ({ attempt }) => attempt.scanId },
      { field: 'request_id', value: ({ attempt }) => attempt.requestId },
      { field: 'pool', value: ({ attempt }) => attempt.pool },
      { field: 'packets', value: ({ attempt }) => attempt.packets },
      { field: 'finished_at', value: ({ attempt }) => isoTime(attempt.finishedAtMs) },
    ],
    empty: {
      title: 'No scans yet',
      text: 'Sensors of version 0.1.24 or later scan the common ports of each server every hour and all ports once a day.',
    },
  });
}

const attemptColumns = (siteId: number, nowMs: number): DataColumn<AttemptLine>[] => [
  {
    key: 'address',
    header: 'Address',
    cell: ({ attempt: { address } }) => link(addressHref(siteId, { address, segment: '' }), address),
    value: ({ attempt }) => attempt.address,
  },
  { key: 'server', header: 'Server', cell: (row) => row.server, value: (row) => row.server },
  {
    key: 'scan',
    header: 'Scan',
    cell: ({ attempt }) => scanText(attempt),
    value: ({ attempt }) => attempt.profile,
    field: 'profile',
  },
  {
    key: 'state',
    header: 'State',
    cell: ({ attempt }) => stateBadge(attempt, nowMs),
    value: ({ attempt }) => attempt.state,
  },
  ageColumn('started', 'Started', ({ attempt }) => attempt.startedAtMs, nowMs, { field: 'started_at' }),
  figureColumn('duration', 'Duration', ({ attempt }) => secondsOf(attempt, nowMs), formatDuration, {
    field: 'duration_seconds',
  }),
  countColumn('ports', 'Open ports', ({ attempt }) => attempt.openPorts, { field: 'open_ports' }),
  figureColumn('rate', 'Packets/s', ({ attempt }) => rateOf(attempt), shownRate, {
    field: 'packets_per_second',
  }),
  textColumn('remarks', 'Remarks', ({ attempt }) => remarksOf(attempt), { kind: 'prose' }),
  {
    key: 'delivery',
    header: 'Operations',
    cell: ({ attempt }) => (attempt.finishedAtMs === null ? '' : deliveryText(attempt.deliveryOutcome)),
    value: ({ attempt }) => attempt.deliveryOutcome,
  },
  { key: 'sensor', header: 'Sensor', cell: (row) => row.sensor, value: (row) => row.sensor },
];

const shownRate = (rate: number | null) => (rate === null ? '' : formatCount(rate));

const poolTexts: Readonly<Record<string, string>> = {
  hourly: 'hourly',
  daily: 'daily',
  customer: 'requested',
};

function scanText({ profile, pool }: ScanAttempt): string {
  const by = pool === null ? '' : `, ${poolTexts[pool]}`;
  return `${profile ?? 'not started'}${by}`;
}

function secondsOf({ startedAtMs, finishedAtMs, reportedAtMs, state }: ScanAttempt, nowMs: number) {
  if (startedAtMs === null) return null;
  const end = finishedAtMs ?? (state === 'running' ? Math.min(nowMs, reportedAtMs) : null);
  return end === null ? null : Math.max(0, Math.round((end - startedAtMs) / 1000));
}

/** While it runs the rate of the last ten seconds, afterwards the mean. */
function rateOf(attempt: ScanAttempt): number | null {
  const { packets, startedAtMs, finishedAtMs, packetsPerSecond } = attempt;
  if (finishedAtMs === null || startedAtMs === null)
    return packetsPerSecond === null ? null : Math.round(packetsPerSecond);
  const seconds = (finishedAtMs - startedAtMs) / 1000;
  return packets === null || seconds <= 0 ? null : Math.round(packets / seconds);
}

// Words of port scans on pages.

const pauseTexts: Readonly<Record<string, string>> = {
  cpu: 'the CPU is busy',
  memory: 'memory is low',
  disk: 'the disk is full',
  plan: 'the plan can not be fetched',
};

/** Why addresses of servers on a node are not scanned. */
export const exclusionTexts: Readonly<Record<Exclusion, string>> = {
  interfaces_stale: 'the sensor did not list its interfaces within 5 min',
  node_ambiguous: 'two clusters have a node of this name',
  not_running: 'not running',
  stale: 'not in the inventory for 15 min',
  not_public: 'not a public address',
  own_address: 'an address of a hypervisor',
  ambiguous: 'several servers have the address or MAC',
  no_source: 'no local address of its family on the WAN interface',
};

/** A sensor reports every ten seconds; after this time without a report a running scan is overdue. */
const overdueMs = 60_000;

export function isOverdue(attempt: ScanAttempt, nowMs: number): boolean {
  return attempt.state === 'running' && nowMs - attempt.reportedAtMs > overdueMs;
}

/** `running, 65 %`, `paused: the CPU is busy`, `no contact for 2 min`, `complete`. */
function stateBadge(attempt: ScanAttempt, nowMs: number): Content {
  if (attempt.state === 'complete') return badge('good', 'complete');
  if (attempt.state === 'partial') return badge('warn', 'partial');
  if (isOverdue(attempt, nowMs)) return badge('warn', `no report, ${formatAge(attempt.reportedAtMs, nowMs)}`);
  if (attempt.pausedFor !== null)
    return badge('warn', `paused: ${pauseTexts[attempt.pausedFor] ?? attempt.pausedFor}`);
  const progress = progressOf(attempt.phase, attempt.percent);
  return badge('info', progress === null ? 'running' : `running, ${Math.floor(progress)} %`);
}

/** What a reader should know of a scan: its notes, and how long it paused. */
function remarksOf({ notes, pauses, pausedSeconds }: ScanAttempt): string {
  const paused = pauses > 0 ? [`paused ${pauses} × for ${formatDuration(pausedSeconds)} in all`] : [];
  return [...paused, ...notes.filter((note) => note !== 'paused' || pauses === 0).map(describeNote)].join(
    '; ',
  );
}

const outcomeTexts: Readonly<Record<string, string>> = {
  accepted: 'delivered',
  unchanged: 'delivered',
  unmatched: 'not of a customer any more',
};

const deliveryText = (outcome: string | null): string =>
  outcome === null ? 'not delivered' : (outcomeTexts[outcome] ?? outcome);
