/**
 * `./svc sensor run`: captures, stores every minute on disk, and delivers it to the monitor, until a signal.
 *
 * Parts stop in reverse order: captures first, so that their last partial minute reaches the spool, then the uplink.
 */
import { flushCompileCache } from 'node:module';
import { hostname } from 'node:os';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { runUntilSignal } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import { compose } from '#sensor/composition.ts';
import { readSensorConfig, type SensorConfig } from '#sensor/config.ts';
import { enrol, readIdentity, type SensorIdentity } from '#sensor/enrolment/index.ts';
import type { MonitorClient } from '#sensor/monitor-client/index.ts';
import { heldCapabilities } from '#sensor/privileges/index.ts';
import { sensorVersion } from '#sensor/version.ts';

/** The monitor may start at the same time as the sensor. The first enrolment waits for it at most this long. */
const enrolPatienceMs = 60_000;

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
  const sensor = compose(config);
  const { reporter, supervision, client } = sensor;
  const identity = readIdentity(config.stateDirectory) ?? (await enrolOnce(config, client, reporter));
  sayTransport(config, reporter);
  const parts = sensor.createParts(identity);
  return runUntilSignal(parts, reporter, () => {
    supervision.ready();
    // Write the cache now, so that the next start after a kill needs no compilation.
    flushCompileCache();
    const captures = config.captures.map((capture) => `${capture.role}:${capture.name}`).join(',');
    const held = heldCapabilities();
    if (held !== null)
      reporter.info('runs without the rights of root', { user: process.getuid?.(), capabilities: held });
    reporter.info('sensor runs', { monitor: config.monitor.url, site: identity.siteName, captures });
    if (config.replayFile) {
      reporter.warn('this is not live traffic: a recorded capture is replayed, shifted to now', {
        file: config.replayFile,
      });
    }
  });
}

/** A sensor with a credential continues to collect into its spool: an upgrade must not lose a minute. */
function sayTransport({ monitor }: SensorConfig, reporter: Reporter): void {
  if (isPrivateTransport(monitor.url)) return;
  if (monitor.allowsInsecureHttp)
    reporter.warn('the monitor is called without encryption, as SVC_ALLOW_INSECURE_HTTP allows', {
      monitor: monitor.url,
    });
  else
    reporter.error(
      'nothing is sent: the address of the monitor is not encrypted; minutes wait in the spool',
      { monitor: monitor.url, do: monitor.insecureAdvice },
    );
}

async function enrolOnce(
  config: SensorConfig,
  client: MonitorClient,
  reporter: Reporter,
): Promise<SensorIdentity> {
  if (!config.enrolmentToken) {
    throw new CodedError(
      'enrolment.missing',
      `This sensor has no credential in ${config.stateDirectory}. Create an enrolment token on its site in the monitor ` +
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
