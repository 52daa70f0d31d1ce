/**
 * Puts the kernel's counters into minutes: totals and local addresses are the kernel's where it counted the whole minute, names are
 * always those of the frames that were seen.
 *
 * The kernel goes on counting while no sensor runs. So a minute in which the sensor was killed or restarted is whole, and one that it
 * missed altogether has all its counters.
 */
import { startOfMinuteMs } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type {
  OwnScanCounters,
  SpoofedTraffic,
  TelemetryHost,
  TelemetryMinute,
} from '#contracts/sensor-api/telemetry.ts';
import { deviceKeyText, type LocalScope } from '#sensor/capture/index.ts';
import type { CaptureDetection } from '#sensor/detection/index.ts';
import {
  type AttachedCounter,
  type DetectedAddresses,
  type KernelMinute,
  loadKernel,
  type SpoofedCounts,
} from '#sensor/kernel/index.ts';
import type { CaptureSpec } from './capture-messages.ts';
import { addSpoofed, spoofedKey } from './merge.ts';

/** Calls of `tick`, about twice a second, between two signs of life. */
const beatTicks = 20;
const openTicks = 120;
/** Minutes that the kernel keeps beside the open one. */
const minutesKept = 3;

interface KernelCountsDeps {
  captures: readonly CaptureSpec[];
  reporter: Reporter;
  /** Gets what the kernel counts for the detector; absent where nothing is detected. */
  detection?: { of(capture: string): Pick<CaptureDetection, 'countBy'> } | undefined;
}

interface Counting {
  spec: CaptureSpec;
  attached: AttachedCounter | null;
  /** Why the kernel does not count. */
  why: string | null;
}

export type KernelCounts = ReturnType<typeof createKernelCounts>;

/** Creates it; nothing is opened before `start`. */
export function createKernelCounts({ captures, reporter, detection }: KernelCountsDeps) {
  const countings = captures.map((spec): Counting => ({ spec, attached: null, why: null }));
  let local: LocalScope | null = null;
  let detected: DetectedAddresses | null = null;
  let takesClaims = false;
  let ticks = 0;

  /** Opens the counters of an interface; without them its frames are counted one by one. */
  async function open(one: Counting): Promise<void> {
    if (one.spec.source.kind !== 'live') {
      one.why = 'a recording is replayed';
      return;
    }
    try {
      const { openCounter, readKinds } = await loadKernel();
      one.attached = openCounter(one.spec.source.interfaceName);
      one.attached.counter.beat();
      setLocal(one);
      detection?.of(one.spec.name).countBy(readKinds(one.attached.counter));
      one.why = null;
      reporter.info('the kernel counts', { capture: one.spec.name });
    } catch (error) {
      one.attached = null;
      one.why = describeError(error);
    }
  }

  function setLocal(one: Counting): void {
    if (local) guarded(one, ({ counter }) => counter.setLocal(local!, one.spec.role === 'bridge', detected));
  }

  /** Calls the kernel. An error ends its counting, and frames are counted one by one from then on. */
  function guarded<T>(one: Counting, call: (attached: AttachedCounter) => T): T | null {
    if (!one.attached) return null;
    try {
      return call(one.attached);
    } catch (error) {
      one.why = describeError(error);
      detection?.of(one.spec.name).countBy(null);
      one.attached.counter.close();
      one.attached = null;
      reporter.warn('the kernel does not count any more', { capture: one.spec.name, why: one.why });
      return null;
    }
  }

  return {
    async start(): Promise<void> {
      await Promise.all(countings.map(open));
    },
    /**
     * Says which addresses are local from now on, and what the detector wants counted; null: nothing. `monitorTakesClaims`: what servers
     * claim beside source addresses of others.
     */
    follow(next: LocalScope, wanted: DetectedAddresses | null, monitorTakesClaims = false): void {
      local = next;
      detected = wanted;
      takesClaims = monitorTakesClaims;
      for (const one of countings) setLocal(one);
    },
    /**
     * Call about twice a second: the kernel stops counting an hour after the last sign of life. A program that is attached later is
     * found once a minute. Resolves when all of that is done.
     */
    async tick(): Promise<void> {
      ticks += 1;
      if (ticks % beatTicks === 0) for (const one of countings) guarded(one, beat);
      if (ticks % openTicks === 0)
        await Promise.all(countings.filter((one) => one.attached === null).map(open));
    },
    /**
     * A minute of a capture with the kernel's counters; null where the kernel did not count all of it. `seen`: what the sensor
     * saw of it. `committed`: what was committed of it already, which is not counted again. Of a minute that is not over it is the
     * part until now.
     */
    count(
      capture: string,
      minute: number,
      seen: TelemetryMinute | null,
      committed: TelemetryMinute | null,
    ): TelemetryMinute | null {
      const one = countings.find(({ spec }) => spec.name === capture);
      const nowMs = Date.now();
      const oldest = startOfMinuteMs(nowMs) / 1000 - minutesKept * 60;
      if (!one || minute < oldest) return null;
      const { role } = one.spec;
      return guarded(one, ({ counter, isAttached }) => {
        if (counter.wholeSinceMs() > minute * 1000 || !isAttached()) return null;
        const passedMs = Math.min(60_000, nowMs - minute * 1000);
        const observedMs = passedMs - (committed?.observedMs ?? 0);
        const base = seen ?? { minute, capture, role, observedMs, totals: noCounters, hosts: [], usage: [] };
        const { spoofed, ...read } = counter.readMinute(minute);
        const counted = subtract(read, committed);
        const rows = spoofed
          .filter(({ reason, address }) => takesClaims || (reason === 'address' && address !== ''))
          .map((row) => rowOf(capture, row));
        const servers = new Set(local?.owners?.flatMap(({ macs }) => macs));
        const claims = {
          rows,
          servers,
          bytes: read.totals.spoofedBytes,
          packets: read.totals.spoofedPackets,
        };
        return { ...withSpoofed(withCounters(base, counted), claims, committed), observedMs };
      });
    },
    /** Why the kernel does not count for a capture; null where it does. */
    whyNot: (capture: string) => countings.find(({ spec }) => spec.name === capture)?.why ?? null,
    /** The kernel goes on counting. */
    stop(): void {
      for (const one of countings) {
        detection?.of(one.spec.name).countBy(null);
        guarded(one, ({ counter }) => counter.close());
      }
    },
  };
}

function beat({ counter, isAttached }: AttachedCounter): void {
  if (!isAttached())
    throw new CodedError(
      'kernel.not_attached',
      'the counting program was taken off, or the interface is new',
    );
  counter.beat();
}

const noCounters = {
  packets: 0,
  ipPackets: 0,
  ipBytes: 0,
  nonIpPackets: 0,
  parserDropped: 0,
  kernelDropped: 0,
  detailTruncated: 0,
};

type Counts = Omit<KernelMinute, 'spoofed'>;

/** What is left of these counters. */
function subtract(counted: Counts, committed: TelemetryMinute | null): Counts {
  if (!committed) return counted;
  const { totals, hosts } = counted;
  const left = { ...totals };
  for (const name of ['packets', 'ipPackets', 'ipBytes', 'nonIpPackets', 'parserDropped'] as const)
    left[name] -= committed.totals[name];
  left.mergedFrames -= committed.totals.mergedFrames ?? 0;
  const rows = new Map(hosts);
  for (const { address, rxBytes, txBytes, packets } of committed.hosts) {
    const row = rows.get(address);
    if (row?.packets === packets) rows.delete(address);
    else if (row)
      rows.set(address, {
        rxBytes: row.rxBytes - rxBytes,
        txBytes: row.txBytes - txBytes,
        packets: row.packets - packets,
      });
  }
  return { ...counted, totals: left, hosts: rows };
}

/** The minute with these counters. What was not seen of it has no names: it counts as truncated, not as lost. */
function withCounters(seen: TelemetryMinute, { totals, hosts, countedAll }: Counts): TelemetryMinute {
  const { packets, ipPackets, ipBytes, nonIpPackets, parserDropped, mergedFrames, withoutRoom } = totals;
  const unseen = Math.max(0, ipPackets - seen.totals.ipPackets);
  // At its turn the kernel has some packets in the minute before that the ring has in this one.
  const isLeft = ({ address }: TelemetryHost) => hosts.has(address) || !countedAll(address);
  const rows = new Map(seen.hosts.filter(isLeft).map((row) => [row.address, row]));
  const seenElsewhere = seen.hosts.reduce(
    (total, row) => total + (hosts.has(row.address) ? 0 : row.packets),
    0,
  );
  for (const [address, counts] of hosts) {
    const row: TelemetryHost = rows.get(address) ?? { address, isLocal: true, deviceKey: '', ...counts };
    const { ownScan } = row;
    rows.set(address, { ...row, ...counts, ...(ownScan && { ownScan: partOf(counts, ownScan) }) });
  }
  return {
    ...seen,
    totals: {
      ...seen.totals,
      ...{ packets, ipPackets, ipBytes, nonIpPackets, parserDropped, mergedFrames },
      // Of addresses without room only what was seen counts.
      kernelDropped: Math.max(0, withoutRoom - seenElsewhere),
      detailTruncated: Math.min(ipPackets, seen.totals.detailTruncated + unseen),
    },
    hosts: [...rows.values()],
  };
}

/** What was seen of own scans, as a part of these counters: at its turn the ring has some in another minute. */
const partOf = (
  counts: OwnScanCounters,
  { rxBytes, txBytes, packets }: OwnScanCounters,
): OwnScanCounters => ({
  rxBytes: Math.min(rxBytes, counts.rxBytes),
  txBytes: Math.min(txBytes, counts.txBytes),
  packets: Math.min(packets, counts.packets),
});

function rowOf(
  segment: string,
  { high, low, reason, address, bytes, packets }: SpoofedCounts,
): SpoofedTraffic {
  const row = { deviceKey: deviceKeyText(segment, high, low), address, bytes, packets };
  return reason === 'address' ? row : { ...row, reason };
}

interface Claims {
  rows: readonly SpoofedTraffic[];
  /** MACs of servers. */
  servers: ReadonlySet<string>;
  /** What found no row in the kernel. */
  bytes: number;
  packets: number;
}

/**
 * The minute with what servers spoofed as the kernel counted it. Of other MACs the rows are those that were seen: the kernel does not know
 * which of them are routers.
 */
function withSpoofed(
  { spoofed: seen = [], ...minute }: TelemetryMinute,
  { rows, servers, bytes, packets }: Claims,
  committed: TelemetryMinute | null,
): TelemetryMinute {
  const before = new Map((committed?.spoofed ?? []).map((row) => [spoofedKey(row), row]));
  const left = [...rows, { deviceKey: '', address: '', bytes, packets }]
    .map((row) => {
      const { bytes: lessBytes = 0, packets: lessPackets = 0 } = before.get(spoofedKey(row)) ?? {};
      return { ...row, bytes: row.bytes - lessBytes, packets: row.packets - lessPackets };
    })
    .filter((row) => row.packets > 0);
  const isOfServer = ({ deviceKey }: SpoofedTraffic) =>
    servers.has(deviceKey.slice(deviceKey.lastIndexOf('|') + 1));
  const others = seen.filter((row) => row.deviceKey !== '' && !isOfServer(row));
  // Of what the engine had no row for, a part is of servers: the kernel has rows for it.
  const rest = seen.filter((row) => row.deviceKey === '');
  const known = left.filter((row) => row.address !== '' && row.reason === undefined);
  const named = seen.filter(isOfServer);
  for (const row of rest) {
    const isOurs = {
      bytes: sum(known, 'bytes') - sum(named, 'bytes'),
      packets: sum(known, 'packets') - sum(named, 'packets'),
    };
    const other = {
      ...row,
      bytes: Math.max(0, row.bytes - isOurs.bytes),
      packets: row.packets - isOurs.packets,
    };
    if (other.packets > 0) others.push(other);
  }
  return { ...minute, ...addSpoofed([...left, ...others]) };
}

const sum = (rows: readonly SpoofedTraffic[], what: 'bytes' | 'packets') =>
  rows.reduce((total, row) => total + row[what], 0);
