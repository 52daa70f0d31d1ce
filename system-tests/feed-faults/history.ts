/** What happens at the monitor while it delivers: minutes that come late, live windows that are corrected, attacks, scans. */
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { addMinutes, minutesAgo } from '#monitor/testing/facts.ts';
import { createFindings } from './change-findings.ts';
import { createScanClock, createScans } from './change-scans.ts';
import type { FeedName, Pair } from './pair.ts';

const bucketMs = 10_000;
/** Windows that the live store holds: a minute more than the feed takes. */
const historyMs = 360_000;
const minutesBack = 50;

export interface History {
  /** One random change of what the monitor knows, for each of these feeds. */
  change(feeds: readonly FeedName[]): Promise<void>;
  /** Keeps what a delivery without faults needs. */
  settle(feeds: readonly FeedName[]): Promise<void>;
}

export function createHistory(pair: Pair, random: (below: number) => number): History {
  const { monitor, sensor, addresses, windows } = pair;
  const spool = createIncidentSpool();
  const open: IncidentObservation[] = [];
  let captures = 0;
  const anyAddress = () => addresses[random(addresses.length)]!;

  /** Another capture has seen a minute, perhaps more of it than those before. */
  async function addMinute(): Promise<void> {
    captures += 1;
    const [rxBytes, txBytes] = [1 + random(2 ** 30), random(2 ** 30)];
    const minute = minutesAgo(2 + random(minutesBack));
    const seen = { minute, address: anyAddress(), rxBytes, txBytes, packets: 1 + random(1e6) };
    await addMinutes(monitor, sensor.id, [{ ...seen, capture: `eth${captures}` }]);
  }

  async function changeIncident(): Promise<void> {
    const said = random(3) > 0 && open.length > 0 ? next() : begin();
    const body = compressUpload(encodeUpload(spool(said)));
    await monitor.inbox.receiveUrgent(sensor, body, 'zstd', requireIncidentsAlone);
  }

  function begin(): IncidentObservation {
    const startedAtMs = Math.floor(Date.now() / 1000) * 1000 - (60 + random(2_400)) * 1000;
    const names = ['syn_flood', 'udp_flood', 'icmp_flood', 'other'] as const;
    const part = { startedAtMs, class: names[random(names.length)]!, pps: 1 + random(1e6) };
    const said = observation({ ...part, bps: 1 + random(1e9), target: anyAddress() });
    open.push(said);
    return said;
  }

  function next(): IncidentObservation {
    const at = random(open.length);
    const before = open[at]!;
    const lastObservedAtMs = before.lastObservedAtMs + 1000;
    const isOver = random(4) === 0;
    const said = observation({
      ...{ id: before.id, revision: before.revision + 1, class: before.class, target: before.target },
      ...{ startedAtMs: before.startedAtMs, detectedAtMs: before.detectedAtMs, lastObservedAtMs },
      ...{ recoveredAtMs: isOver ? lastObservedAtMs : null, bps: 1 + random(1e9), pps: 1 + random(1e6) },
    });
    if (isOver) open.splice(at, 1);
    else open[at] = said;
    return said;
  }

  /** A window is counted again, as when a sensor sends what was missing. */
  function correctWindow(): void {
    const window = windows[random(windows.length)];
    const host = window?.hosts[random(window.hosts.length)];
    if (host) host.rxBytes = 1 + random(2 ** 30);
  }

  const nextAt = createScanClock();
  const scans = createScans(pair, random, nextAt);
  const findings = createFindings(pair, random, nextAt);
  const changes: Readonly<Record<FeedName, () => Promise<void>>> = {
    async live() {
      keepWindows(pair, random);
      correctWindow();
    },
    incidents: changeIncident,
    'port-scans': scans.change,
    vulnerabilities: findings.change,
    async telemetry() {
      if (random(4) === 0) await addMinute();
    },
  };
  return {
    async change(feeds) {
      for (const feed of feeds) await changes[feed]();
    },
    async settle(feeds) {
      keepWindows(pair, random);
      await scans.settle();
      if (feeds.includes('vulnerabilities')) await findings.settle();
    },
  };
}

/** Adds the windows that ended since, and removes old ones; the bucket of now is not complete. */
function keepWindows({ sensor, addresses, windows }: Pair, random: (below: number) => number): void {
  const complete = Math.floor(Date.now() / bucketMs) * bucketMs - bucketMs;
  const known = new Set(windows.map((window) => window.startedAtMs));
  for (let startedAtMs = complete; startedAtMs > complete - historyMs; startedAtMs -= bucketMs) {
    if (known.has(startedAtMs)) continue;
    windows.push({
      ...{ sensorId: sensor.id, capture: 'eth0', role: 'uplink', startedAtMs, observedMs: bucketMs },
      ...{ packets: 100, ipBytes: 100, parserDropped: 0, kernelDropped: 0, hostsLeftOut: 0 },
      hosts: addresses.map((address) => {
        return { address, rxBytes: 1 + random(2 ** 30), txBytes: random(2 ** 30), packets: 10 };
      }),
    });
  }
  const first = complete - historyMs;
  const kept = windows.filter((window) => window.startedAtMs > first);
  windows.splice(0, windows.length, ...kept.sort((a, b) => b.startedAtMs - a.startedAtMs));
}
