/**
 * The live path of detection in one process, with a clock that the test moves: capture threads over rings that the test
 * fills, their reports, the detection, and a spool on disk.
 */

import { createTestClock } from '#common/clock/index.ts';
import { type Reporter, silentReporter } from '#common/reporter/index.ts';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryMinute,
} from '#contracts/sensor-api/telemetry-codec.ts';
import type { WatchedScope } from '#sensor/attack-counters/index.ts';
import { MemberReports } from '#sensor/collection/capture-group.ts';
import { CaptureLoop, createWallWatch } from '#sensor/collection/capture-loop.ts';
import type { FromWorker } from '#sensor/collection/capture-messages.ts';
import { Detection } from '#sensor/detection/index.ts';
import { Evidence } from '#sensor/evidence/index.ts';
import { createHostTime } from '#sensor/host-time/index.ts';
import { KindReader } from '#sensor/kernel/kind-reader.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import type { ObserveFrame } from '#sensor/packet-source/index.ts';
import { parsePlan, type SensorPlan } from '#sensor/plan/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { playStreams, type Stream, startSecond } from './attack-traffic.ts';
import type { KernelRuns } from './kernel-runs.ts';

const stepMs = 20;
const capture = 'eth0';

interface Frame {
  at: number;
  bytes: Uint8Array;
}

export type DetectingSensor = Awaited<ReturnType<typeof createDetectingSensor>>;

/** A plan that protects the victims, with these thresholds. */
export function detectionPlan(detection: Record<string, unknown> | null, more: Record<string, unknown> = {}) {
  return parsePlan({
    plan_version: 1,
    application_usage_version: 1,
    application_protocol_version: 1,
    local_cidrs: ['192.0.2.0/24', '2001:db8:7::/48'],
    protected_targets: ['192.0.2.7', '2001:db8:7::7'],
    ...(detection ? { detection_version: 1, detection } : {}),
    ...more,
  })!;
}

export interface SensorSetting {
  members?: number;
  role?: 'uplink' | 'bridge';
  from?: number;
  uptimeFrom?: number;
  /** Packets of attacks are recorded, and sent to it. */
  monitor?: string;
  /** Free bytes of the disk. */
  freeBytes?: number;
  reporter?: Reporter;
  /** Speed of the uplink; by default it is unknown. */
  linkBps?: number;
  /** Counts in the kernel too. Needs root. */
  kernel?: KernelRuns;
}

/** Starts a sensor at `startSecond` plus `from`; `directory` keeps its spool and its open incidents. */
export async function createDetectingSensor(
  directory: string,
  {
    members = 1,
    role = 'uplink',
    from = 0,
    uptimeFrom = 0,
    monitor,
    freeBytes,
    reporter = silentReporter,
    linkBps,
    kernel,
  }: SensorSetting = {},
) {
  const clock = createTestClock((startSecond + from) * 1000);
  const hostTime = createHostTime(clock, () => clock.monotonicMs() + uptimeFrom, 'boot');
  const kinds = recordKinds;
  const options = { directory, bytesMax: 8 << 20, sensorVersion: '0.1.0', kinds, clock };
  const spool = createSpool({ ...options, reporter: silentReporter });
  spool.open();
  const evidence = new Evidence({
    ...{ captures: [capture], stateDirectory: directory, spool, clock, reporter },
    client: createMonitorClient(monitor ?? 'http://127.0.0.1:1'),
    freeBytes: async () => freeBytes ?? 1e12,
  });
  const detection = new Detection({
    ...{ captures: [capture], stateDirectory: directory, spool, clock, hostTime },
    uplinks: role === 'uplink' ? [{ name: capture, linkBps: () => linkBps ?? null }] : [],
    reporter: silentReporter,
    onCommitted() {},
    ...(monitor === undefined ? {} : { evidence }),
  });
  const minutes: TelemetryMinute[] = [];
  const own = detection.of(capture);
  const reports = new MemberReports({
    spec: {
      name: capture,
      role,
      source: { kind: 'live', interfaceName: capture, ringMiB: 2, method: 'ring' },
    },
    membersNow: () => members,
    foreignMacs: () => new Set(),
    onMinute: (minute) => minutes.push(minute),
    onWindow() {},
    detection: own,
  });
  const rings: Frame[][] = Array.from({ length: members }, () => []);
  let dropped = 0;
  let keeps = 1;
  let offered = 0;
  const hear = (member: number) => (message: FromWorker) => {
    if (message.kind === 'seconds') own.take(structuredClone(message.seconds), members);
    if (message.kind === 'stepped') own.noteStep(member, message.byMs);
    if (message.kind === 'reports') reports.takeMinutes(message.reports);
    if (message.kind === 'recorded') evidence.of(capture).take(structuredClone(message.recorded), members);
  };
  const loops = rings.map(
    (ring, member) =>
      new CaptureLoop({
        input: {
          name: capture,
          role,
          share: 1 / members,
          windowMs: 10_000,
          windowApplicationsMax: 10,
        },
        watch: createWallWatch(clock.nowMs, clock.monotonicMs),
        hostTime,
        say: hear(member),
        source: {
          ...{ linkType: 1, settleMs: 1000, lingerMs: 120 },
          takeDropped() {
            const now = member === 0 ? dropped : 0;
            if (member === 0) dropped = 0;
            return now;
          },
          poll(_, observe: ObserveFrame) {
            for (const { at, bytes } of ring.splice(0))
              observe(bytes, 0, bytes.length, bytes.length, Math.floor(at), (at % 1) * 1e9, -1, 1);
          },
        },
      }),
  );
  own.onOrder((order) => {
    for (const loop of loops) loop.setCounting(order);
  });
  let watched: WatchedScope = null;
  own.onWatch((scope) => {
    watched = scope;
    for (const loop of loops) loop.watch(scope);
  });
  if (kernel) own.countBy(new KindReader(kernel.counter, clock.monotonicMs));
  evidence.of(capture).onWanted((wanted) => {
    for (const loop of loops) loop.record(wanted);
  });
  for (const loop of loops) loop.begin({ prefixes: ['192.0.2.0/24', '2001:db8:7::/48'], addresses: [] });
  await evidence.start();
  await detection.start();

  async function turn(): Promise<void> {
    for (const loop of loops) await loop.turn();
  }

  /** Frames by their times, of several sources each in order, arrive; moves the clock to `until` (unix seconds). */
  async function arrive(sources: readonly Iterator<Frame>[], until: number): Promise<void> {
    const next = sources.map((source) => source.next());
    while (clock.nowMs() < until * 1000) {
      const then = (clock.nowMs() + stepMs) / 1000;
      for (const [i, source] of sources.entries()) {
        for (; !next[i]!.done && next[i]!.value!.at < then; next[i] = source.next()) {
          const frame: Frame = next[i]!.value!;
          // What arrives as a second begins is of that second, and the kernel has counted all of the one before.
          kernel?.run(frame);
          offered += 1;
          if (offered % keeps === 0) rings[i % members]!.push(frame);
          else dropped += 1;
        }
      }
      await clock.advance(stepMs);
      for (const ring of rings) ring.sort((a, b) => a.at - b.at);
      await turn();
    }
  }

  return {
    ...{ clock, detection, evidence, spool, minutes },
    /** Frames of these streams arrive in time at these members, in turn by stream; moves the clock to `until` (seconds). */
    async play(streams: readonly Stream[], until: number) {
      const queues = streams.map((stream) => framesOf(playStreams([stream])));
      await arrive(queues, startSecond + until);
    },
    arrive,
    /** Whose packets the rings tell apart; null: everyone's. */
    watched: () => watched,
    /** The rings have room for one of so many frames from now on. */
    keep(oneOf: number) {
      keeps = oneOf;
    },
    /** Moves the clock without a turn of the capture threads, as when they are stopped. */
    async stall(seconds: number) {
      await clock.advance(seconds * 1000);
    },
    /** The kernel dropped so many packets. */
    drop(packets: number) {
      dropped += packets;
    },
    follow(plan: SensorPlan) {
      kernel?.counter.setLocal(
        { prefixes: plan.localPrefixes, addresses: plan.protectedAddresses, owners: plan.owners },
        role === 'bridge',
        plan.detection && { prefixes: plan.detection.additionalPrefixes },
      );
      evidence.announce(plan.detection?.takesEvidence ?? false);
      detection.follow(plan);
    },
    async stop() {
      if (monitor !== undefined) for (const loop of loops) loop.finish('sensor_down');
      await detection.stop();
      await evidence.stop();
      spool.close();
    },
    /** What lies in the spool, in the order in which it leaves. */
    incidents: () => readIncidents(spool),
  };
}

function* framesOf(played: ReturnType<typeof playStreams>): Generator<Frame> {
  for (const { at, frame } of played) yield { at, bytes: frame };
}

/** Takes the observations of incidents out of a spool. */
export function readIncidents(spool: Spool): IncidentObservation[] {
  const found: IncidentObservation[] = [];
  for (let upload = spool.oldest(); upload?.kind === 'incidents'; upload = spool.oldest()) {
    found.push(...(decodeUpload(decompressUpload(upload.body, 'zstd')).incidents ?? []));
    spool.acknowledge(upload, 'accepted');
  }
  return found;
}
