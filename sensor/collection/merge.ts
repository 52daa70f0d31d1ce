/**
 * Merges parts of one minute: from fanout members, which saw different flows at the same time, or from one capture that
 * restarted within the minute and saw all flows in sequence. Counters add in both cases.
 */
import { type DetectorMinute, type DetectorRow, detectorRowsMax } from '#contracts/sensor-api/detection.ts';
import { type LiveHost, type LiveWindow, liveHostsMax } from '#contracts/sensor-api/live.ts';
import {
  type OwnScanCounters,
  type SpoofedTraffic,
  spoofedRowsMax,
  type TelemetryHost,
  type TelemetryMinute,
  type TelemetryTotals,
  type TelemetryUsageRow,
  usageRowsMax,
} from '#contracts/sensor-api/telemetry.ts';
import type { MinuteReport, WindowApplication, WindowReport } from '#sensor/capture/index.ts';
import type { CaptureRole } from './capture-messages.ts';

/** Adds totals field by field. */
function addTotals<T extends TelemetryTotals>(parts: readonly T[]): T {
  const sums = { ...parts[0]! };
  for (const part of parts.slice(1)) {
    for (const field of Object.keys(part) as (keyof TelemetryTotals)[]) {
      sums[field] = (sums[field] ?? 0) + (part[field] ?? 0);
    }
  }
  return sums;
}

/**
 * Merges the reports of a capture's members for one minute. The owner of an address is decided over all members: a
 * member that never saw it send has no vote, but one that saw two MACs, or knows the MAC as a router's, overrules the
 * others. `foreignMacs` are MACs of this host and of its routers, which own no address (NET-2.2.9): what they pass on for
 * another is not spoofed, unless the plan names them as a server's (`serverMacs`).
 */
export function mergeMembers(
  members: readonly MinuteReport[],
  role: CaptureRole,
  foreignMacs: ReadonlySet<string>,
  serverMacs: ReadonlySet<string> = new Set(),
): TelemetryMinute {
  const { minute, capture } = members[0]!;
  const strangers = new Set(foreignMacs);
  for (const member of members) for (const mac of member.routerMacs) strangers.add(mac);
  const owners = new Map<string, string>();
  const contested = new Set<string>();
  const rows: TelemetryHost[] = [];
  for (const host of members.flatMap((member) => member.hosts)) {
    if (!host.isLocal) continue;
    const { isContested, ...counted } = host;
    const { address, deviceKey } = host;
    rows.push(counted);
    if (isContested) contested.add(address);
    if (deviceKey === '') continue;
    const known = owners.get(address);
    if (known !== undefined && known !== deviceKey) contested.add(address);
    owners.set(address, deviceKey);
  }
  const ownerOf = (address: string): string => {
    const key = owners.get(address) ?? '';
    return contested.has(address) || strangers.has(macOf(key)) ? '' : key;
  };
  const hosts = addHosts(rows, (host) => ownerOf(host.address));
  const isForwarder = (mac: string) => strangers.has(mac) && !serverMacs.has(mac);
  const spoofed = members.flatMap((member) => member.spoofed);
  return {
    minute,
    capture,
    role,
    observedMs: Math.min(...members.map((member) => member.observedMs)),
    hosts,
    ...addDetail(members),
    ...addSpoofed(spoofed.filter((row) => !isForwarder(macOf(row.deviceKey)))),
  };
}

/**
 * Joins two consecutive parts of one capture's minute; the minute stays partial. `knowsOwners`: false for a first part
 * that has no owners of addresses, so that it has no say in them.
 */
export function joinParts(
  first: TelemetryMinute,
  second: TelemetryMinute,
  knowsOwners = true,
): TelemetryMinute {
  const keys = new Map(knowsOwners ? first.hosts.map((host) => [host.address, host.deviceKey]) : []);
  const hosts = addHosts([...first.hosts, ...second.hosts], (host) => {
    // Parts that disagree about the owner, or do not know it, clear the key (NET-2.2.9).
    const earlier = keys.get(host.address);
    return earlier === undefined || earlier === host.deviceKey ? host.deviceKey : '';
  });
  const observedMs = Math.min(first.observedMs + second.observedMs, 59_999);
  const detector = joinDetectors(first.detector, second.detector);
  return {
    ...first,
    observedMs,
    hosts,
    ...addDetail([first, second]),
    ...(detector && { detector }),
    ...addSpoofed([...(first.spoofed ?? []), ...(second.spoofed ?? [])]),
  };
}

/** What the detector says of two parts of a minute. */
function joinDetectors(
  first: DetectorMinute | undefined,
  second: DetectorMinute | undefined,
): DetectorMinute | undefined {
  if (!first || !second) return first ?? second;
  const rows = new Map(first.rows.map((row) => [`${row.direction} ${row.address}`, row]));
  for (const row of second.rows) {
    const key = `${row.direction} ${row.address}`;
    const other = rows.get(key);
    rows.set(key, other ? joinRows(other, row) : row);
  }
  return {
    ticks: Math.min(59, first.ticks + second.ticks),
    epochId: first.epochId === second.epochId ? first.epochId : '',
    overflowed: first.overflowed + second.overflowed,
    incidentsLost: first.incidentsLost + second.incidentsLost,
    mergedFrames: first.mergedFrames + second.mergedFrames,
    rows: [...rows.values()].slice(0, detectorRowsMax),
  };
}

function joinRows(a: DetectorRow, b: DetectorRow): DetectorRow {
  return {
    ...a,
    oneSecond: a.oneSecond.map((rate, i) => Math.max(rate, b.oneSecond[i]!)),
    tenSeconds: a.tenSeconds.map((rate, i) => Math.max(rate, b.tenSeconds[i]!)),
    attackBytes: a.attackBytes + b.attackBytes,
    attackPackets: a.attackPackets + b.attackPackets,
  };
}

function addHosts(rows: readonly TelemetryHost[], keyOf: (host: TelemetryHost) => string): TelemetryHost[] {
  const hosts = new Map<string, TelemetryHost>();
  for (const row of rows) {
    const host = hosts.get(row.address);
    if (!host) {
      hosts.set(row.address, { ...row, deviceKey: keyOf(row) });
      continue;
    }
    host.rxBytes += row.rxBytes;
    host.txBytes += row.txBytes;
    host.packets += row.packets;
    if (row.ownScan) host.ownScan = addOwnScans(host.ownScan, row.ownScan);
    host.deviceKey = keyOf(row);
  }
  return [...hosts.values()];
}

const addOwnScans = (one: OwnScanCounters | undefined, other: OwnScanCounters): OwnScanCounters => ({
  rxBytes: (one?.rxBytes ?? 0) + other.rxBytes,
  txBytes: (one?.txBytes ?? 0) + other.txBytes,
  packets: (one?.packets ?? 0) + other.packets,
});

export const spoofedKey = ({ deviceKey, address, reason }: SpoofedTraffic) =>
  [deviceKey, address, reason].join(' ');

/** One row for each sender, address and reason, the largest; the others are in one without. Nothing where there is none. */
export function addSpoofed(parts: readonly SpoofedTraffic[]): { spoofed?: SpoofedTraffic[] } {
  const rows = new Map<string, SpoofedTraffic>();
  const add = (row: SpoofedTraffic) => {
    const key = spoofedKey(row);
    const { bytes = 0, packets = 0 } = rows.get(key) ?? {};
    rows.set(key, { ...row, bytes: bytes + row.bytes, packets: packets + row.packets });
  };
  for (const row of parts) add(row);
  const named = [...rows.values()].filter((row) => row.deviceKey !== '');
  for (const row of named.sort((a, b) => b.bytes - a.bytes).slice(spoofedRowsMax - 1)) {
    rows.delete(spoofedKey(row));
    add({ deviceKey: '', address: '', bytes: row.bytes, packets: row.packets });
  }
  return rows.size === 0 ? {} : { spoofed: [...rows.values()] };
}

export const noTotals: TelemetryTotals = {
  packets: 0,
  ipPackets: 0,
  ipBytes: 0,
  nonIpPackets: 0,
  parserDropped: 0,
  kernelDropped: 0,
  detailTruncated: 0,
};

/** Totals and the largest usage rows. Packets of the other rows count as truncated. */
export function addDetail(parts: readonly Pick<TelemetryMinute, 'totals' | 'usage'>[]): {
  totals: TelemetryTotals;
  usage: TelemetryUsageRow[];
} {
  const totals = addTotals(parts.map((part) => part.totals));
  if (parts.length === 1) return { totals, usage: parts[0]!.usage };
  const rows = new Map<string, TelemetryUsageRow>();
  for (const row of parts.flatMap((part) => part.usage)) {
    const key = [row.client, row.server, row.protocol, row.serverPort, row.direction, row.name].join(' ');
    const known = rows.get(key);
    if (!known) {
      rows.set(key, { ...row });
      continue;
    }
    known.clientBytes += row.clientBytes;
    known.serverBytes += row.serverBytes;
    known.packets += row.packets;
    known.clientLastSentMs = Math.max(known.clientLastSentMs, row.clientLastSentMs);
    known.serverLastSentMs = Math.max(known.serverLastSentMs, row.serverLastSentMs);
    if (known.evidence === 'none') known.evidence = row.evidence;
  }
  const usage = [...rows.values()];
  if (usage.length <= usageRowsMax) return { totals, usage };
  usage.sort((a, b) => rank(b) - rank(a));
  const leftOut = usage.splice(usageRowsMax).reduce((sum, row) => sum + row.packets, 0);
  totals.detailTruncated = Math.min(totals.detailTruncated + leftOut, totals.ipPackets);
  return { totals, usage };
}

/** The same order as in the packet path: rows with traffic in both directions first, then the largest. */
function rank(row: TelemetryUsageRow): number {
  const isBothWays = row.clientBytes > 0 && row.serverBytes > 0;
  return row.clientBytes + row.serverBytes + (isBothWays ? 2 ** 52 : 0);
}

function macOf(deviceKey: string): string {
  return deviceKey.slice(deviceKey.lastIndexOf('|') + 1);
}

// Merges the live windows of a capture's fanout members, and cuts them to the live limits (NET-8).

/** A window as shown on this host: includes applications, which are not sent live to the monitor. */
export interface LocalWindow extends LiveWindow {
  applications: WindowApplication[];
  /** Addresses that others sent from in this minute up to the window's end. */
  spoofed: string[];
}

/** Addresses of allocations come first, then the busiest. Other addresses are counted, but their traffic is not. */
export function mergeWindows(
  members: readonly WindowReport[],
  capture: { name: string; role: CaptureRole },
  isProtected: (address: string) => boolean,
): LocalWindow {
  const hosts = new Map<string, LiveHost>();
  for (const row of members.flatMap((member) => member.hosts)) {
    const host = hosts.get(row.address);
    if (!host) {
      hosts.set(row.address, { ...row });
      continue;
    }
    host.rxBytes += row.rxBytes;
    host.txBytes += row.txBytes;
    host.packets += row.packets;
  }
  const rank = (host: LiveHost) => host.rxBytes + host.txBytes + (isProtected(host.address) ? 2 ** 52 : 0);
  const ranked = [...hosts.values()].sort((a, b) => rank(b) - rank(a));
  return {
    capture: capture.name,
    role: capture.role,
    startedAtMs: members[0]!.startedAtMs,
    observedMs: Math.min(...members.map((member) => member.observedMs)),
    totals: addTotals(members.map((member) => member.totals)),
    hosts: ranked,
    hostsLeftOut: 0,
    applications: addApplications(members.flatMap((member) => member.applications)),
    spoofed: [...new Set(members.flatMap((member) => member.spoofed))],
  };
}

/** The window as it is sent. */
export function cutWindow<T extends LiveWindow>(window: T): T {
  const hosts = window.hosts.slice(0, liveHostsMax);
  return { ...window, hosts, hostsLeftOut: window.hosts.length - hosts.length };
}

function addApplications(rows: readonly WindowApplication[]): WindowApplication[] {
  const sums = new Map<string, WindowApplication>();
  for (const row of rows) {
    const key = `${row.name} ${row.protocol} ${row.serverPort}`;
    const sum = sums.get(key);
    if (!sum) sums.set(key, { ...row });
    else {
      sum.clientBytes += row.clientBytes;
      sum.serverBytes += row.serverBytes;
    }
  }
  const size = (row: WindowApplication) => row.clientBytes + row.serverBytes;
  return [...sums.values()].sort((a, b) => size(b) - size(a));
}
