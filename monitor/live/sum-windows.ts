/**
 * Computes the traffic of addresses from windows. Pure.
 *
 * Captures overlap: the uplink sees traffic of the bridge. So for each address and window only the strongest capture
 * counts, as for minutes. Parts of one capture, from before and after a restart, are added: their bytes and their
 * times. Rates are bytes divided by observed time; nothing is estimated.
 */
import { liveWindowMs } from '#contracts/sensor-api/live.ts';
import type { StoredWindow } from './live-store.ts';

export interface LivePoint {
  startedAtMs: number;
  inBps: number;
  outBps: number;
  pps: number;
  addresses: number;
  /** Number of captures with this window. */
  captures: number;
  kernelDropped: number;
  parserDropped: number;
}

export interface LiveAddress {
  address: string;
  inBps: number;
  outBps: number;
  pps: number;
  /** The capture that counts. */
  sensorId: number;
  capture: string;
  observedMs: number;
}

/** One capture over time: all traffic of its interface. */
export interface LiveCapture {
  sensorId: number;
  capture: string;
  role: 'uplink' | 'bridge';
  /** By the window's start; missing windows are left out. */
  bps: Map<number, number>;
  newestMs: number;
  kernelDropped: number;
  parserDropped: number;
}

export interface SiteLive {
  /** By time; windows without any capture are missing. */
  points: LivePoint[];
  /** Addresses of the newest point, the busiest first. */
  addresses: LiveAddress[];
  captures: LiveCapture[];
  /** The read reached a limit: older windows of the range are missing (NET-2.5.3). */
  isLimited: boolean;
}

/** A capture's window, with its parts added. */
interface CaptureWindow extends Pick<StoredWindow, 'sensorId' | 'capture' | 'role' | 'startedAtMs'> {
  observedMs: number;
  hosts: Map<string, { rxBytes: number; txBytes: number; packets: number }>;
}

export function sumWindows(windows: readonly StoredWindow[], isLimited: boolean): SiteLive {
  const byStart = new Map<number, CaptureWindow[]>();
  const losses = new Map<number, { kernelDropped: number; parserDropped: number }>();
  const captures = new Map<string, LiveCapture>();
  const joined = new Map<string, CaptureWindow & { ipBytes: number }>();
  for (const window of windows) {
    const { sensorId, capture, role, startedAtMs } = window;
    const name = `${sensorId} ${capture}`;
    const key = `${startedAtMs} ${name}`;
    const known = joined.get(key);
    const one = known ?? {
      sensorId,
      capture,
      role,
      startedAtMs,
      observedMs: 0,
      ipBytes: 0,
      hosts: new Map(),
    };
    if (!known) {
      joined.set(key, one);
      byStart.set(startedAtMs, [...(byStart.get(startedAtMs) ?? []), one]);
    }
    one.observedMs = Math.min(liveWindowMs, one.observedMs + window.observedMs);
    one.ipBytes += window.ipBytes;
    for (const { address, rxBytes, txBytes, packets } of window.hosts) {
      const held = one.hosts.get(address) ?? { rxBytes: 0, txBytes: 0, packets: 0 };
      one.hosts.set(address, {
        rxBytes: held.rxBytes + rxBytes,
        txBytes: held.txBytes + txBytes,
        packets: held.packets + packets,
      });
    }
    const loss = losses.get(startedAtMs) ?? { kernelDropped: 0, parserDropped: 0 };
    loss.kernelDropped += window.kernelDropped;
    loss.parserDropped += window.parserDropped;
    losses.set(startedAtMs, loss);
    noteCapture(captures, name, window, (one.ipBytes * 8000) / one.observedMs);
  }
  const starts = [...byStart.keys()].sort((a, b) => a - b);
  let addresses: LiveAddress[] = [];
  const points = starts.map((startedAtMs) => {
    const told = byStart.get(startedAtMs)!;
    addresses = [...strongest(told).values()];
    const sum = (pick: (one: LiveAddress) => number) =>
      addresses.reduce((total, one) => total + pick(one), 0);
    return {
      startedAtMs,
      inBps: sum((one) => one.inBps),
      outBps: sum((one) => one.outBps),
      pps: sum((one) => one.pps),
      addresses: addresses.length,
      captures: told.length,
      ...losses.get(startedAtMs)!,
    };
  });
  addresses.sort((a, b) => b.inBps + b.outBps - a.inBps - a.outBps || (a.address < b.address ? -1 : 1));
  const order = (a: LiveCapture, b: LiveCapture) =>
    a.sensorId - b.sensorId || (a.capture < b.capture ? -1 : 1);
  return { points, addresses, captures: [...captures.values()].sort(order), isLimited };
}

function noteCapture(captures: Map<string, LiveCapture>, name: string, window: StoredWindow, bps: number) {
  const { sensorId, capture, role, startedAtMs } = window;
  const empty = { sensorId, capture, role, bps: new Map(), newestMs: 0, kernelDropped: 0, parserDropped: 0 };
  const one: LiveCapture = captures.get(name) ?? empty;
  captures.set(name, one);
  one.bps.set(startedAtMs, bps);
  one.newestMs = Math.max(one.newestMs, startedAtMs);
  one.kernelDropped += window.kernelDropped;
  one.parserDropped += window.parserDropped;
}

/**
 * For each address the capture with the most bytes; for equal bytes the longest observed, then the uplink, then the
 * first.
 */
function strongest(told: readonly CaptureWindow[]): Map<string, LiveAddress> {
  const ordered = [...told].sort(
    (a, b) =>
      b.observedMs - a.observedMs ||
      Number(b.role === 'uplink') - Number(a.role === 'uplink') ||
      a.sensorId - b.sensorId ||
      (a.capture < b.capture ? -1 : 1),
  );
  const chosen = new Map<string, { bytes: number; row: LiveAddress }>();
  for (const { sensorId, capture, observedMs, hosts } of ordered) {
    for (const [address, { rxBytes, txBytes, packets }] of hosts) {
      const bytes = rxBytes + txBytes;
      const known = chosen.get(address);
      if (known && known.bytes >= bytes) continue;
      const inBps = (rxBytes * 8000) / observedMs;
      const outBps = (txBytes * 8000) / observedMs;
      const pps = (packets * 1000) / observedMs;
      chosen.set(address, { bytes, row: { address, inBps, outBps, pps, sensorId, capture, observedMs } });
    }
  }
  return new Map([...chosen].map(([address, { row }]) => [address, row]));
}
