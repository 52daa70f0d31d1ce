/** Merges the live windows of a capture's fanout members, and cuts them to the live limits (NET-8). */
import { type LiveHost, type LiveWindow, liveHostsMax } from '#contracts/sensor-api/live.ts';
import type { WindowApplication, WindowReport } from '#sensor/capture/index.ts';
import type { CaptureRole } from './capture-spec.ts';
import { addTotals } from './merge-minutes.ts';

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
