/**
 * A capture for the lives of `clock-history.ts`: follows the clock like a capture's thread, and records every frame.
 */
import type { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { type HostTime, offsetOf } from '#sensor/host-time/index.ts';

export const captureNames = ['eth0', 'br0'] as const;
const roles = { eth0: 'uplink', br0: 'bridge' } as const;

export interface ModelCapture {
  name: (typeof captureNames)[number];
  hear(id: number): void;
  poll(): void;
  close(reason: 'sensor_down' | 'clock_step'): void;
}

/** Behaves like a capture's thread, with frames that are only numbers. */
export function createModelCapture(
  name: (typeof captureNames)[number],
  host: HostTime,
  collector: MinuteCollector,
  monotonicMs: () => number,
): ModelCapture {
  let minute = 0;
  let sinceMs = 0;
  let offsetMs = 0;
  let heard: number[] = [];
  /** How many of them live windows have told, and until when. */
  let told = 0;
  let toldMs = 0;
  let reason: 'clock_step' | null = null;
  const listen = () => {
    const now = host.read();
    sinceMs = now.wallMs;
    toldMs = sinceMs;
    minute = Math.floor(sinceMs / 60_000) * 60;
    offsetMs = now.wallMs - monotonicMs();
    collector.listening(name, sinceMs, offsetOf(now));
  };
  function report(untilMs: number, lastReason: 'sensor_down' | 'clock_step' | null): void {
    const why = reason ?? lastReason;
    const observedMs = Math.round(Math.min(60_000, Math.max(0, untilMs - Math.max(minute * 1000, sinceMs))));
    collector.report(
      {
        ...{ minute, capture: name, role: roles[name], usage: [] },
        observedMs: why ? Math.min(observedMs, 59_999) : observedMs,
        totals: totalsOf(heard),
        hosts: heard.map((id) => ({ ...hostOf(id), isLocal: true, deviceKey: '' })),
      },
      why,
    );
    heard = [];
    told = 0;
    toldMs = untilMs;
    reason = null;
  }
  /** Tells what was heard since the window before, as live windows do. */
  function tellWindow(untilMs: number): void {
    const ids = heard.slice(told);
    collector.window({
      ...{ capture: name, role: roles[name], startedAtMs: Math.max(toldMs, minute * 1000) },
      ...{
        observedMs: Math.max(0, Math.round(untilMs - toldMs)),
        hostsLeftOut: 0,
        applications: [],
        spoofed: [],
      },
      ...{ totals: totalsOf(ids), hosts: ids.map(hostOf) },
    });
    told = heard.length;
    toldMs = untilMs;
  }
  function look(): void {
    const { wallMs } = host.read();
    const stepMs = wallMs - monotonicMs() - offsetMs;
    if (Math.abs(stepMs) >= 1500) {
      turnTo(wallMs - stepMs);
      report(wallMs - stepMs, 'clock_step');
      listen();
      reason = 'clock_step';
      return;
    }
    turnTo(wallMs);
  }
  function turnTo(wallMs: number): void {
    while (wallMs >= (minute + 60) * 1000) {
      report((minute + 60) * 1000, null);
      minute += 60;
    }
  }
  listen();
  return {
    name,
    poll() {
      look();
      tellWindow(host.read().wallMs);
    },
    hear(id) {
      look();
      heard.push(id);
    },
    close(why) {
      look();
      report(host.read().wallMs, why);
    },
  };
}

function totalsOf({ length: packets }: readonly number[]) {
  const nothing = { nonIpPackets: 0, parserDropped: 0, kernelDropped: 0, detailTruncated: 0 };
  return { packets, ipPackets: packets, ipBytes: packets, ...nothing };
}

const hostOf = (id: number) => ({
  address: `10.${id >> 16}.${(id >> 8) & 255}.${id & 255}`,
  ...{ rxBytes: 1, txBytes: 0, packets: 1 },
});
