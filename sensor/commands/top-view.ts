/**
 * Renders `sensor top` as lines of text: rates of interfaces, hosts and applications, losses, the spool.
 *
 * Pure: windows and terminal size in, lines out. Names come from the wire, so only printable characters are output.
 */

import { parseAddress } from '#common/ip/index.ts';
import { serviceName } from '#common/ip/port-services.ts';
import { transportName } from '#contracts/ip-protocols.ts';
import type { LocalWindow } from '#sensor/collection/index.ts';
import { describeEvidence, type SensorStatus } from '#sensor/local-status/index.ts';

export const sortings = ['total', 'in', 'out', 'packets'] as const;
export type Sorting = (typeof sortings)[number];

export interface TopState {
  /** The newest window of each capture, by name. */
  windows: ReadonlyMap<string, LocalWindow>;
  /** Null without a sensor. */
  status: SensorStatus | null;
  sorting: Sorting;
  isPaused: boolean;
  /** A message that is not part of the windows. */
  note: string | null;
}

interface Column {
  title: string;
  isFigure?: boolean;
  /** Cells in bits per second. The whole table uses one unit, which is in the title. */
  isRate?: boolean;
  /** Hidden on narrower terminals. */
  fromWidth?: number;
}

/** Text, or a rate in bits per second. */
type Cell = string | number;

/** The whole screen, at most `height` lines of at most `width` characters. */
export function renderTop(state: TopState, width: number, height: number): string[] {
  const windows = [...state.windows.values()].sort((a, b) => (a.capture < b.capture ? -1 : 1));
  const lines = [headLine(state, windows), ...statusLines(state), ''];
  lines.push(...interfaceLines(state, windows, width), '');
  const incidents = incidentRows(state.status?.incidents ?? []);
  if (incidents.length > 0)
    lines.push(
      ...tableLines(incidentColumns, incidents, width, Math.min(incidents.length, incidentsShown) + 1),
      '',
    );
  lines.push(...scanLines(state.status?.scans ?? null, width));
  const room = Math.max(2, height - lines.length - 1);
  const hosts = hostRows(windows, state.sorting);
  const applications = applicationRows(windows);
  // Hosts get the larger half, unless there are few.
  const forHosts = Math.min(
    hosts.length + 1,
    Math.max(Math.ceil(room * 0.55), room - applications.length - 1),
  );
  lines.push(...tableLines(hostColumns, hosts, width, forHosts), '');
  lines.push(...tableLines(applicationColumns, applications, width, room - forHosts));
  return lines.slice(0, height).map((line) => printable(line).slice(0, width));
}

/** One line per window, for logs and pipes. */
export function renderPlain(window: LocalWindow): string {
  const seconds = window.observedMs / 1000;
  const [host] = hostRows([window], 'total');
  const [application] = applicationRows([window]);
  const parts = [
    new Date(window.startedAtMs).toISOString().slice(11, 19),
    `${window.capture} (${window.role})`,
    formatMbit((window.totals.ipBytes * 8) / seconds),
    `${formatCount(window.totals.packets / seconds)} packets/s`,
    `lost ${window.totals.kernelDropped}, unparsed ${window.totals.parserDropped}`,
    host ? `top host ${host[0]} ${formatMbit(host[1])} in ${formatMbit(host[2])} out` : 'no host',
    application ? `top application ${application[0]} ${formatMbit(application[2])}` : 'no application',
  ];
  return printable(parts.join('  '));
}

/** One line for each incident that a capture sees, for logs and pipes. */
export function renderPlainIncidents(status: SensorStatus | null, capture: string): string[] {
  return incidentRows((status?.incidents ?? []).filter((one) => one.capture === capture)).map(
    ([target, name, direction, bps, packets, since]) =>
      printable(
        `  attacked ${target}  ${name} ${direction}  ${formatMbit(Number(bps))}  ${packets} packets/s  since ${since}`,
      ),
  );
}

function headLine(state: TopState, windows: readonly LocalWindow[]): string {
  const newest = windows.reduce((last, window) => Math.max(last, window.startedAtMs + window.observedMs), 0);
  const at = newest > 0 ? new Date(newest).toISOString().slice(11, 19) : 'waiting for the first window';
  const paused = state.isPaused ? '  PAUSED' : '';
  return `svc sensor top  ${at}  by ${state.sorting}${paused}   q quit, p pause, s sort`;
}

function statusLines(state: TopState): string[] {
  const lines = state.note === null ? [] : [state.note];
  if (!state.status) return lines;
  const { spool, live, captures } = state.status;
  const room = spool.roomMinutes === null ? '' : `, room for ${(spool.roomMinutes / 60).toFixed(1)} h`;
  const posted = live.isAnnounced
    ? `${live.posted} live windows posted, ${live.dropped} dropped`
    : 'the monitor accepts no live windows';
  lines.push(
    `spool: ${spool.pendingUploads} uploads pending (${formatBytes(spool.pendingBytes)})${room}; ${posted}`,
  );
  lines.push(...evidenceLines(state.status));
  for (const { name, isListening, why } of captures) {
    if (!isListening || why)
      lines.push(`${name}: ${isListening ? '' : 'not listening: '}${why ?? 'no plan yet'}`);
  }
  return lines;
}

/** Capture files of attacks that are recorded or wait; nothing while there are none. */
function evidenceLines({ evidence }: SensorStatus): string[] {
  if (!evidence || evidence.waitingFiles + evidence.recording + evidence.dropped === 0) return [];
  const dropped = evidence.dropped === 0 ? '' : `, ${evidence.dropped} dropped`;
  const why = evidence.why === null || evidence.waitingFiles === 0 ? '' : `: ${evidence.why}`;
  return [`evidence: ${describeEvidence(evidence)}${dropped}${why}`];
}

function interfaceLines(state: TopState, windows: readonly LocalWindow[], width: number): string[] {
  const columns: Column[] = [
    { title: 'INTERFACE' },
    { title: 'ROLE', fromWidth: 70 },
    { title: 'RATE', isRate: true },
    { title: 'PACKETS/S', isFigure: true },
    { title: 'LOST', isFigure: true },
    { title: 'UNPARSED', isFigure: true, fromWidth: 60 },
    { title: 'NO DETAIL', isFigure: true, fromWidth: 80 },
    // Only a queried sensor reports its capture method.
    ...(state.status ? [{ title: 'METHOD', fromWidth: 90 }] : []),
  ];
  const methodOf = (name: string) => {
    const capture = state.status?.captures.find((one) => one.name === name);
    if (!capture?.method) return '';
    return capture.members > 1 ? `${capture.method} ×${capture.members}` : capture.method;
  };
  const rows = windows.map((window) => {
    const seconds = window.observedMs / 1000;
    const { totals } = window;
    // A plus means that offload merged an unknown number of packets.
    const more = (totals.mergedFrames ?? 0) > 0 ? '+' : '';
    return [
      window.capture,
      window.role,
      (totals.ipBytes * 8) / seconds,
      `${formatCount(totals.packets / seconds)}${more}`,
      formatCount(totals.kernelDropped),
      formatCount(totals.parserDropped),
      formatCount(totals.detailTruncated),
      methodOf(window.capture),
    ];
  });
  return tableLines(columns, rows, width, rows.length + 1);
}

const incidentsShown = 8;
const incidentColumns: Column[] = [
  { title: 'ATTACKED' },
  { title: 'CLASS' },
  { title: 'DIRECTION', fromWidth: 80 },
  { title: 'RATE', isRate: true },
  { title: 'PACKETS/S', isFigure: true, fromWidth: 60 },
  { title: 'SINCE' },
  { title: 'SEEN AT', fromWidth: 90 },
];

/** Incidents that go on, attacks first, the largest first. */
function incidentRows(incidents: SensorStatus['incidents']): Cell[][] {
  const rank = (one: SensorStatus['incidents'][number]) => (one.severity === 'attack' ? 1 : 0);
  return [...incidents]
    .sort((a, b) => rank(b) - rank(a) || b.pps - a.pps)
    .map((one) => [
      one.target,
      `${one.class}${one.drill ? ' (drill)' : one.severity === 'info' ? ' (info)' : ''}`,
      one.direction,
      one.bps,
      formatCount(one.pps),
      new Date(one.startedAtMs).toISOString().slice(11, 19),
      one.capture,
    ]);
}

const scanColumns: Column[] = [
  { title: 'SCANNED' },
  { title: 'PROFILE', fromWidth: 60 },
  { title: 'PHASE' },
  { title: 'DONE', isFigure: true },
  { title: 'OPEN', isFigure: true },
  { title: 'PAUSED', fromWidth: 70 },
];

/** Port scans that run; nothing while none does. */
function scanLines(status: SensorStatus['scans'] | null, width: number): string[] {
  const rows = (status?.scans ?? []).map((one): Cell[] => [
    one.address,
    `${one.profile}, ${one.pool}`,
    one.step.replace('_', ' '),
    `${Math.floor(one.percent)} %`,
    formatCount(one.open),
    one.pausedFor ?? '',
  ]);
  return rows.length === 0 ? [] : [...tableLines(scanColumns, rows, width, rows.length + 1), ''];
}

const hostColumns: Column[] = [
  { title: 'HOST' },
  { title: 'IN', isRate: true },
  { title: 'OUT', isRate: true },
  { title: 'PACKETS/S', isFigure: true, fromWidth: 60 },
  { title: 'SEEN AT', fromWidth: 80 },
];

/** For each address the capture that saw most of it, because captures overlap and are never added (NET-2.2.5). */
function hostRows(
  windows: readonly LocalWindow[],
  sorting: Sorting,
): [string, number, number, string, string][] {
  const strongest = new Map<string, { in: number; out: number; packets: number; capture: string }>();
  for (const window of windows) {
    const seconds = window.observedMs / 1000;
    for (const host of window.hosts) {
      const known = strongest.get(host.address);
      const rate = { in: (host.rxBytes * 8) / seconds, out: (host.txBytes * 8) / seconds };
      if (known && known.in + known.out >= rate.in + rate.out) continue;
      strongest.set(host.address, { ...rate, packets: host.packets / seconds, capture: window.capture });
    }
  }
  const size = (one: { in: number; out: number; packets: number }) =>
    sorting === 'total' ? one.in + one.out : one[sorting];
  return [...strongest]
    .sort(([, a], [, b]) => size(b) - size(a))
    .map(([address, one]) => [address, one.in, one.out, formatCount(one.packets), one.capture]);
}

const applicationColumns: Column[] = [
  { title: 'APPLICATION' },
  { title: 'SERVICE', fromWidth: 50 },
  { title: 'RATE', isRate: true },
  { title: 'UP', isRate: true, fromWidth: 70 },
  { title: 'DOWN', isRate: true, fromWidth: 70 },
];

interface ApplicationRate {
  name: string;
  service: string;
  up: number;
  down: number;
}

/** For each application the capture that saw most of it. */
function applicationRows(windows: readonly LocalWindow[]): [string, string, number, number, number][] {
  const strongest = new Map<string, ApplicationRate>();
  for (const window of windows) {
    for (const [key, one] of applicationsOf(window)) {
      const known = strongest.get(key);
      if (!known || known.up + known.down < one.up + one.down) strongest.set(key, one);
    }
  }
  return [...strongest.values()]
    .sort((a, b) => b.up + b.down - a.up - a.down)
    .map((one) => [one.name, one.service, one.up + one.down, one.up, one.down]);
}

/** Traffic without a name is listed under the service of its port, as on the monitor, for every remote address. */
function applicationsOf(window: LocalWindow): Map<string, ApplicationRate> {
  const bitsPerByte = 8 / (window.observedMs / 1000);
  const rates = new Map<string, ApplicationRate>();
  for (const row of window.applications) {
    const transport = transportName(row.protocol);
    const service = row.serverPort === null ? transport : `${transport} ${row.serverPort}`;
    const isUnnamed = parseAddress(row.name) !== null;
    const name = (isUnnamed ? serviceName(row.protocol, row.serverPort) : null) ?? row.name;
    const key = `${name} ${service}`;
    const rate = rates.get(key) ?? { name, service, up: 0, down: 0 };
    rate.up += row.clientBytes * bitsPerByte;
    rate.down += row.serverBytes * bitsPerByte;
    rates.set(key, rate);
  }
  return rates;
}

/** Aligned columns; the first one is truncated when the terminal is too narrow. */
function tableLines(columns: readonly Column[], rows: readonly Cell[][], width: number, linesMax: number) {
  if (linesMax < 1) return [];
  const unit = unitOf(rows.slice(0, linesMax - 1));
  const shown = rows
    .slice(0, linesMax - 1)
    .map((row) => row.map((cell) => (typeof cell === 'number' ? formatIn(cell, unit.size) : cell)));
  const titles = columns.map((column) => (column.isRate ? `${column.title} ${unit.name}` : column.title));
  const used = columns.flatMap((column, i) => ((column.fromWidth ?? 0) <= width ? [i] : []));
  const widths = used.map((i) =>
    shown.reduce((most, row) => Math.max(most, row[i]!.length), titles[i]!.length),
  );
  const rest = widths.slice(1).reduce((sum, one) => sum + one + 2, 0);
  widths[0] = Math.max(8, Math.min(widths[0]!, width - rest));
  const line = (cells: readonly string[]) =>
    used
      .map((column, i) => {
        const cell = cells[column]!.slice(0, widths[i]);
        const isRight = columns[column]!.isFigure || columns[column]!.isRate;
        return isRight ? cell.padStart(widths[i]!) : cell.padEnd(widths[i]!);
      })
      .join('  ')
      .trimEnd();
  return [line(titles), ...shown.map(line)];
}

const units = [
  { name: 'Tbit/s', size: 1e12 },
  { name: 'Gbit/s', size: 1e9 },
  { name: 'Mbit/s', size: 1e6 },
  { name: 'kbit/s', size: 1e3 },
  { name: 'bit/s', size: 1 },
];

/** The unit in which the largest rate of a table is a small number. */
function unitOf(rows: readonly Cell[][]): { name: string; size: number } {
  const most = rows
    .flat()
    .reduce((largest: number, cell) => (typeof cell === 'number' ? Math.max(largest, cell) : largest), 0);
  return units.find(({ size }) => most >= size) ?? units.at(-1)!;
}

function formatIn(bitsPerSecond: number, size: number): string {
  const value = bitsPerSecond / size;
  if (size === 1 || value === 0) return formatCount(value);
  return value < 0.005 ? '<0.01' : value.toFixed(2);
}

/** Consecutive lines always use the same unit. */
function formatMbit(bitsPerSecond: number): string {
  return `${formatIn(bitsPerSecond, 1e6)} Mbit/s`;
}

function formatBytes(bytes: number): string {
  return `${scaled(bytes)}B`;
}

function scaled(value: number): string {
  const units = ['', 'k', 'M', 'G', 'T'];
  let unit = 0;
  let rest = value;
  while (rest >= 999.5 && unit < units.length - 1) {
    rest /= 1000;
    unit += 1;
  }
  return `${rest < 10 && unit > 0 ? rest.toFixed(1) : Math.round(rest)} ${units[unit]}`;
}

function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e\u00a0-\uffff]/g, '?');
}
