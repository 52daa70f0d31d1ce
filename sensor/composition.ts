/**
 * How the sensor is put together: what its parts stand on, the parts, and what one tells another.
 *
 * Nothing runs here; `run` starts the parts. A part that gets word of the plan is wired in `followPlan`.
 */
import { type Clock, systemClock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { createReporter, type Reporter } from '#common/reporter/index.ts';
import { type Collection, createCollection } from '#sensor/collection/index.ts';
import type { SensorConfig } from '#sensor/config.ts';
import { Detection } from '#sensor/detection/index.ts';
import type { SensorIdentity } from '#sensor/enrolment/index.ts';
import { Evidence } from '#sensor/evidence/index.ts';
import { createFilterService, type FilterService } from '#sensor/filter/index.ts';
import {
  createHostTime,
  createMonitorTime,
  type HostTime,
  type MonitorTime,
} from '#sensor/host-time/index.ts';
import { createInterfaces, readLinkBps } from '#sensor/interfaces/index.ts';
import { LiveUplink, readCondition } from '#sensor/live/index.ts';
import { createStatusServer } from '#sensor/local-status/index.ts';
import { createMonitorClient, type MonitorClient } from '#sensor/monitor-client/index.ts';
import { createPlanFollower } from '#sensor/plan/index.ts';
import { createProber, type Prober } from '#sensor/probes/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { Rotation } from '#sensor/rotation/index.ts';
import { createHostScans, type ScanService } from '#sensor/scanner/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { createSupervision } from '#sensor/supervision/index.ts';
import { createUplink, type Uplink } from '#sensor/uplink/index.ts';
import { sensorVersion } from '#sensor/version.ts';

/** Timeout of the request for the monitor's time. */
const askTimeoutMs = 10_000;
const outageNoteEveryMs = 86_400_000;
/** While an attack may be filtered: the rule comes in its first seconds, and an operator may change it later. */
const newAttackMs = 15_000;
const planEveryMs = { newAttack: 500, attack: 2_000 };

/** Parts that others can take the place of. What is absent is made by the settings. */
export interface Overrides {
  reporter?: Reporter;
  /** Wall time and waiting; packets keep the kernel's time. */
  clock?: Clock;
}

/** What the parts stand on. */
interface Platform {
  config: SensorConfig;
  reporter: Reporter;
  clock: Clock;
  time: { host: HostTime; monitor: MonitorTime };
  /** Calls the monitor without a credential. */
  client: MonitorClient;
}

/** Wires the sensor. */
export function compose(config: SensorConfig, overrides: Overrides = {}) {
  const { logFormat: format, logLevel: level, notifySocket, watchdogMs } = config;
  const { clock = systemClock, reporter = createReporter({ program: 'sensor', format, level }) } = overrides;
  const host = createHostTime(clock);
  const time = { host, monitor: createMonitorTime(host) };
  const client = createMonitorClient(config.monitor, {
    begin: () => host.read(),
    onAnswer: (date, begun) => time.monitor.note(date, begun),
  });
  const platform = { config, reporter, clock, time, client };
  const supervision = createSupervision({ notifySocket, watchdogMs, reporter });
  return {
    ...platform,
    supervision,
    /** Makes the parts of an enrolled sensor, in the order in which they start. */
    createParts: (identity: SensorIdentity): Part[] => [supervision, ...createParts(platform, identity)],
  };
}

function createParts(platform: Platform, identity: SensorIdentity): Part[] {
  const { config, reporter, clock, time, client: bare } = platform;
  const { stateDirectory } = config;
  const spool = createSpool({
    directory: stateDirectory,
    bytesMax: config.spoolBytesMax,
    sensorVersion,
    kinds: recordKinds,
    clock,
    reporter,
  });
  const rotation = new Rotation({ client: bare, identity, stateDirectory, clock, reporter });
  const { client } = rotation;
  const ask = () => client.request({ method: 'GET', path: '/plan', timeoutMs: askTimeoutMs });
  const uplink = createUplink({ spool, client, clock, reporter, time: { ...time, ask } });
  const interfaces = createInterfaces({ clock, reporter });
  const live = new LiveUplink({
    client,
    sensorVersion,
    clock,
    reporter,
    condition: () => {
      const state = { isPaused: collection.isPaused(), captures: collection.states() };
      return readCondition(stateDirectory, spool.status(), state, clock.nowMs());
    },
  });
  const prober = createProber({ clock, reporter });
  const noteOutage = createOutageNote(spool, clock, reporter);
  const captures = config.captures.map(({ name }) => name);
  const evidence = new Evidence({ captures, stateDirectory, client, spool, clock, reporter });
  const detection = new Detection({
    ...{ stateDirectory, spool, clock, reporter, hostTime: time.host },
    captures,
    uplinks: config.captures
      .filter(({ role }) => role === 'uplink')
      .map(({ name }) => ({ name, linkBps: () => readLinkBps(name) })),
    evidence,
    onCommitted: () => {
      uplink.wake();
      if (filter.isReady()) plan.hasten();
    },
  });
  const filter = createFilterService({
    ...{ captures: config.captures, isWanted: config.hasFilter, clock, reporter },
    onSecond: (capture, second, rows) => detection.of(capture).noteFiltered(second, rows),
  });
  const collection = createCollection({
    detection,
    evidence,
    captures: config.captures,
    spool,
    stateDirectory,
    reporter,
    clock,
    onCommitted: () => {
      uplink.wake();
      noteOutage();
    },
    hostTime: time.host,
    onStateChanged: () => live.tellCondition(),
    onWindow(window) {
      live.offer(window);
      status.publish(window);
    },
    foreignMacs: () => interfaces.foreignMacs(),
    records: [interfaces, prober, detection.epochs],
    dropped: (capture, minute) => filter.dropped(capture, minute),
  });
  const scans = createScans(platform, client, (pairs) => collection.setOwnScans(pairs));
  const status = createStatus(platform, identity, {
    ...{ spool, collection, live, detection, scans, evidence, filter },
  });
  const plan = followPlan(
    { ...platform, client },
    { ...{ rotation, live, prober, collection, detection, uplink, evidence, filter } },
  );
  // The collection stops before the uplink and the spool; it counts nothing before the first plan. The prober stops
  // first, so that its last minute is committed with the collection's.
  const parts = [spoolPart(spool, reporter), status, interfaces, uplink, live, rotation, plan];
  // Evidence gets the last packets of captures that stop.
  // Scans stop before the captures that keep their traffic apart.
  return [...parts, evidence, detection, filter, collection, prober, ...(scans ? [scans] : [])];
}

/** Port scans; null where they are off. A replayed capture is of another host, so nothing of this one is scanned then. */
function createScans(
  { config, clock, reporter }: Platform,
  client: MonitorClient,
  onOwnTraffic: Collection['setOwnScans'],
): ScanService | null {
  const { scans, replayFile, stateDirectory } = config;
  if (!scans.isOn || replayFile !== null) return null;
  return createHostScans({ client, stateDirectory, clock, reporter, pressure: scans, onOwnTraffic });
}

/** Each section of the plan goes to the part that it is for. */
function followPlan(
  { config, client, clock, reporter }: Platform,
  parts: {
    rotation: Rotation;
    live: LiveUplink;
    prober: Prober;
    collection: Collection;
    detection: Detection;
    uplink: Uplink;
    evidence: Evidence;
    filter: FilterService;
  },
) {
  return createPlanFollower({
    client,
    stateDirectory: config.stateDirectory,
    clock,
    reporter,
    onPlan: (next) => {
      parts.live.announce(next.takesLive);
      parts.prober.follow(next.probes);
      parts.collection.follow(next);
      parts.evidence.announce(next.detection?.takesEvidence ?? false);
      parts.detection.follow(next);
      parts.filter.follow(next.filterRules);
      parts.uplink.announce(next.detection !== null);
    },
    urgentEveryMs: () => {
      const attacks = parts.detection
        .active()
        .filter(({ severity, drill }) => severity === 'attack' && !drill);
      if (!parts.filter.isReady() || attacks.length === 0) return null;
      const isNew = attacks.some(({ startedAtMs }) => clock.nowMs() - startedAtMs < newAttackMs);
      return isNew ? planEveryMs.newAttack : planEveryMs.attack;
    },
    onCredential: (isDue) => parts.rotation.follow(isDue),
  });
}

function createStatus(
  { config, clock, reporter }: Platform,
  identity: SensorIdentity,
  {
    spool,
    collection,
    live,
    detection,
    scans,
    evidence,
    filter,
  }: {
    spool: Spool;
    collection: Collection;
    live: LiveUplink;
    detection: Detection;
    scans: ScanService | null;
    evidence: Evidence;
    filter: FilterService;
  },
) {
  const startedAtMs = clock.nowMs();
  return createStatusServer({
    stateDirectory: config.stateDirectory,
    reporter,
    status: () => ({
      version: sensorVersion,
      monitor: config.monitor.url,
      site: identity.siteName,
      startedAtMs,
      captures: collection.states(),
      spool: spool.status(),
      live: live.status(),
      incidents: detection.active(),
      scans: scans?.status() ?? null,
      evidence: evidence.status(),
      filters: filter.status(),
    }),
  });
}

function spoolPart(spool: Spool, reporter: Reporter): Part {
  return {
    name: 'spool',
    async start() {
      spool.open();
      const { pendingUploads, pendingBytes } = spool.status();
      if (pendingUploads > 0)
        reporter.info('uploads wait in the spool', { uploads: pendingUploads, bytes: pendingBytes });
    },
    async stop() {
      spool.close();
    },
  };
}

/** Logs how long an outage of the monitor the spool can bridge: after the first minute, then once a day. */
function createOutageNote(spool: Spool, clock: Clock, reporter: Reporter): () => void {
  let saidAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = clock.monotonicMs();
    const { roomMinutes } = spool.status();
    if (roomMinutes === null || nowMs - saidAtMs < outageNoteEveryMs) return;
    saidAtMs = nowMs;
    reporter.info('spool room at the present rate', { hours: Math.round(roomMinutes / 6) / 10 });
  };
}
