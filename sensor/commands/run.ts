/**
 * `./svc sensor run`: listens, keeps every minute on disk, and hands it to the monitor, until a signal.
 *
 * Parts stop in reverse order: first the captures, whose last partial minute still reaches the spool, then the uplink.
 */
import { flushCompileCache } from 'node:module';
import { hostname } from 'node:os';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { type Part, runUntilSignal } from '#common/lifecycle/index.ts';
import { createReporter, type Reporter } from '#common/reporter/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import { createCollection } from '#sensor/collection/index.ts';
import { readSensorConfig, type SensorConfig } from '#sensor/config.ts';
import { enrol, readIdentity, type SensorIdentity } from '#sensor/enrolment/index.ts';
import {
  createHostTime,
  createMonitorTime,
  type HostTime,
  type MonitorTime,
} from '#sensor/host-time/index.ts';
import { createInterfaces } from '#sensor/interfaces/index.ts';
import { createLiveUplink, readCondition } from '#sensor/live/index.ts';
import { createStatusServer } from '#sensor/local-status/index.ts';
import { createMonitorClient, type MonitorClient } from '#sensor/monitor-client/index.ts';
import { createPlanFollower } from '#sensor/plan/index.ts';
import { keptCapabilities } from '#sensor/privileges/index.ts';
import { createProber } from '#sensor/probes/index.ts';
import { createRotation } from '#sensor/rotation/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { createSupervision } from '#sensor/supervision/index.ts';
import { createUplink } from '#sensor/uplink/index.ts';
import { sensorVersion } from '#sensor/version.ts';

/** The monitor may start beside the sensor; longer than this it does not wait for it before the first enrolment. */
const enrolPatienceMs = 60_000;
/** How long the monitor may take to tell its time. */
const askTimeoutMs = 10_000;
const outageNoteEveryMs = 86_400_000;

/** Runs the sensor with the settings in this environment. Resolves with the exit code. */
export async function run(environment: Readonly<Record<string, string | undefined>>): Promise<number> {
  const config = readSensorConfig(environment);
  if (config.captures.length === 0) {
    throw new CodedError(
      'config.invalid',
      'The sensor has nothing to listen to. Set SVC_SENSOR_CAPTURES, such as uplink:eth0,bridge:br0, ' +
        'or SVC_SENSOR_REPLAY to a capture file.',
    );
  }
  const { logFormat: format, logLevel: level } = config;
  const reporter = createReporter({ program: 'sensor', format, level });
  const host = createHostTime(systemClock);
  const time = { host, monitor: createMonitorTime(host) };
  const client = createMonitorClient(config.monitor, {
    begin: () => host.read(),
    onAnswer: (date, begun) => time.monitor.note(date, begun),
  });
  const identity = readIdentity(config.stateDirectory) ?? (await enrolOnce(config, client, reporter));
  sayTransport(config, reporter);
  const spool = createSpool({
    directory: config.stateDirectory,
    bytesMax: config.spoolBytesMax,
    sensorVersion,
    clock: systemClock,
    reporter,
  });
  const { notifySocket, watchdogMs } = config;
  const supervision = createSupervision({ notifySocket, watchdogMs, reporter });
  const parts = [supervision, ...createParts(config, client, identity, spool, time, reporter)];
  return runUntilSignal(parts, reporter, () => {
    supervision.ready();
    // Kept now, so that a sensor that is killed later starts again without compiling.
    flushCompileCache();
    const captures = config.captures.map((capture) => `${capture.role}:${capture.name}`).join(',');
    const kept = keptCapabilities();
    if (kept !== null) reporter.info('runs as root with these capabilities alone', { kept });
    reporter.info('sensor runs', { monitor: config.monitor.url, site: identity.siteName, captures });
    if (config.replayFile) {
      reporter.warn('this is no live traffic: a recorded capture is replayed, shifted to now', {
        file: config.replayFile,
      });
    }
  });
}

/** A sensor that has a credential goes on collecting into its spool: an upgrade must not cost it a minute. */
function sayTransport({ monitor }: SensorConfig, reporter: Reporter): void {
  if (isPrivateTransport(monitor.url)) return;
  if (monitor.allowsInsecureHttp)
    reporter.warn('the monitor is called without encryption, as SVC_ALLOW_INSECURE_HTTP allows', {
      monitor: monitor.url,
    });
  else
    reporter.error(
      'nothing is sent: the address of the monitor is not encrypted; minutes wait in the spool',
      {
        monitor: monitor.url,
        do: monitor.insecureAdvice,
      },
    );
}

function createParts(
  config: SensorConfig,
  bare: MonitorClient,
  identity: SensorIdentity,
  spool: Spool,
  time: { host: HostTime; monitor: MonitorTime },
  reporter: Reporter,
): Part[] {
  const { stateDirectory } = config;
  const rotation = createRotation({ client: bare, identity, stateDirectory, clock: systemClock, reporter });
  const { client } = rotation;
  const ask = () => client.request({ method: 'GET', path: '/plan', timeoutMs: askTimeoutMs });
  const uplink = createUplink({ spool, client, reporter, time: { ...time, ask } });
  const interfaces = createInterfaces({ clock: systemClock, reporter });
  const live = createLiveUplink({
    client,
    sensorVersion,
    clock: systemClock,
    reporter,
    condition: () =>
      readCondition(
        stateDirectory,
        spool.status(),
        { isPaused: collection.isPaused(), captures: collection.states() },
        systemClock.nowMs(),
      ),
  });
  const prober = createProber({ clock: systemClock, reporter });
  const collection = createCollection({
    captures: config.captures,
    spool,
    reporter,
    onCommitted: () => {
      uplink.wake();
      sayOutage();
    },
    hostTime: time.host,
    onStateChanged: () => live.tellCondition(),
    onWindow(window) {
      live.offer(window);
      status.publish(window);
    },
    foreignMacs: () => interfaces.foreignMacs(),
    inventory: () => interfaces.current(),
    probes: prober,
  });
  const sayOutage = createOutageNote(spool, reporter);
  const plan = createPlanFollower({
    client,
    stateDirectory: config.stateDirectory,
    clock: systemClock,
    reporter,
    onPlan: (next) => {
      live.announce(next.takesLive);
      prober.follow(next.probes);
      collection.follow(next);
    },
    onCredential: (isDue) => rotation.follow(isDue),
  });
  const startedAtMs = systemClock.nowMs();
  const status = createStatusServer({
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
    }),
  });
  const spoolPart: Part = {
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
  // Before the uplink and the spool stops the collection; it counts nothing before the first plan. The prober stops first
  // of all, so that its last minute goes with the collection's.
  return [spoolPart, status, interfaces, uplink, live, rotation, plan, collection, prober];
}

/** Says for how long an outage of the monitor would be outlasted: with the first minute's size, then once a day. */
function createOutageNote(spool: Spool, reporter: Reporter): () => void {
  let saidAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = systemClock.monotonicMs();
    const { roomMinutes } = spool.status();
    if (roomMinutes === null || nowMs - saidAtMs < outageNoteEveryMs) return;
    saidAtMs = nowMs;
    reporter.info('room for an outage of the monitor at the present rate', {
      hours: Math.round(roomMinutes / 6) / 10,
    });
  };
}

async function enrolOnce(
  config: SensorConfig,
  client: MonitorClient,
  reporter: Reporter,
): Promise<SensorIdentity> {
  if (!config.enrolmentToken) {
    throw new CodedError(
      'enrolment.missing',
      `This sensor has no credential in ${config.stateDirectory}. Make an enrolment token on its site in the monitor ` +
        `and set SVC_SENSOR_ENROLMENT_TOKEN, or call ${config.commandName} enrol.`,
    );
  }
  return enrol({
    client,
    stateDirectory: config.stateDirectory,
    token: config.enrolmentToken,
    hostName: hostname(),
    node: config.node,
    sensorVersion,
    clock: systemClock,
    reporter,
    patienceMs: enrolPatienceMs,
  });
}
