/**
 * Whether the host has room for scans (NET-8.4): measured every five seconds. Scans stop at the first bad measurement and go
 * on after 30 healthy seconds; a gap of more than ten seconds between measurements begins those anew.
 */
import { readFileSync, statfsSync } from 'node:fs';
import type { ScanPause } from '#contracts/sensor-api/port-scans.ts';

export const sampleEveryMs = 5000;
const healthyMs = 30_000;
const gapMaxMs = 10_000;
const memoryAvailableMin = 1024 ** 3;
/** Part of the memory that is available at least. */
const memoryPartMin = 0.1;
const memoryFullPercent = 1;
const diskFreeMin = 1024 ** 3;

/** From where scans stop. */
export interface PressureLimits {
  /** Share of all CPUs that are busy, in percent. */
  cpuPercent: number;
  /** Share of time in which a task waited for a CPU, in percent (PSI). */
  cpuWaitPercent: number;
}

export interface HostSample {
  /** Busy and all time of all CPUs since the start of the host, in any unit. */
  cpuBusy: number;
  cpuTotal: number;
  memoryAvailable: number;
  memoryTotal: number;
  diskFree: number;
  /** PSI, in percent over ten seconds; null where the kernel has none. */
  cpuSome: number | null;
  memoryFull: number | null;
}

/** Judges one measurement after the other. */
export class HostPressure {
  readonly #limits: PressureLimits;
  #last: { sample: HostSample; atMs: number } | null = null;
  #reason: Exclude<ScanPause, 'plan'> | null = null;
  #healthySinceMs: number | null = null;

  constructor(limits: PressureLimits) {
    this.#limits = limits;
  }

  /** Takes a measurement at this monotonic time. Returns why scans must not run now, or null. */
  take(sample: HostSample, atMs: number): Exclude<ScanPause, 'plan'> | null {
    const before = this.#last;
    const isGap = before !== null && atMs - before.atMs > gapMaxMs;
    this.#last = { sample, atMs };
    const bad = this.#judge(sample, isGap ? null : (before?.sample ?? null));
    if (bad !== null) {
      this.#reason = bad;
      this.#healthySinceMs = null;
    } else if (this.#reason !== null) {
      if (this.#healthySinceMs === null || isGap) this.#healthySinceMs = atMs;
      if (atMs - this.#healthySinceMs >= healthyMs) this.#reason = null;
    }
    return this.#reason;
  }

  #judge(sample: HostSample, before: HostSample | null): Exclude<ScanPause, 'plan'> | null {
    const { cpuPercent, cpuWaitPercent } = this.#limits;
    const time = before === null ? 0 : sample.cpuTotal - before.cpuTotal;
    const busy = before === null ? 0 : sample.cpuBusy - before.cpuBusy;
    if (time > 0 && (100 * busy) / time >= cpuPercent) return 'cpu';
    if (sample.cpuSome !== null && sample.cpuSome >= cpuWaitPercent) return 'cpu';
    const availableMin = Math.max(memoryAvailableMin, sample.memoryTotal * memoryPartMin);
    if (sample.memoryAvailable < availableMin) return 'memory';
    if (sample.memoryFull !== null && sample.memoryFull >= memoryFullPercent) return 'memory';
    return sample.diskFree < diskFreeMin ? 'disk' : null;
  }
}

/** Measures this host. Throws where the kernel does not say. */
export function readHost(stateDirectory: string): HostSample {
  // user, nice, system, idle, iowait, irq, softirq, steal; guests' time is part of user's.
  const times = /^cpu +([\d ]+)$/m
    .exec(readFileSync('/proc/stat', 'utf8'))![1]!
    .split(' ')
    .slice(0, 8)
    .map(Number);
  const cpuTotal = times.reduce((sum, one) => sum + one, 0);
  const memory = readFileSync('/proc/meminfo', 'utf8');
  const bytesOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(memory)![1]) * 1024;
  const disk = statfsSync(stateDirectory);
  return {
    cpuBusy: cpuTotal - times[3]! - times[4]!,
    cpuTotal,
    memoryAvailable: bytesOf('MemAvailable'),
    memoryTotal: bytesOf('MemTotal'),
    diskFree: disk.bavail * disk.bsize,
    cpuSome: pressureOf('cpu', 'some'),
    memoryFull: pressureOf('memory', 'full'),
  };
}

function pressureOf(resource: string, line: string): number | null {
  try {
    const text = readFileSync(`/proc/pressure/${resource}`, 'utf8');
    const found = new RegExp(`^${line} avg10=([\\d.]+)`, 'm').exec(text)?.[1];
    return found === undefined ? null : Number(found);
  } catch {
    return null;
  }
}
