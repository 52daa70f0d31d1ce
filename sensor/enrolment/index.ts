/**
 * Enrolment: exchanges a one-time token for the sensor's first credential and stores it in a file of mode 0600.
 *
 * Guarantees: the credential is on disk before `enrol` returns, and a stored one is never overwritten. A used token can
 * not be retried, so a lost answer needs a new token; the error says so.
 */
import { accessSync, constants } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { type MonitorAnswer, type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';
import { parseIdentity, type SensorIdentity, storeIdentity } from './identity-file.ts';

export { isCredential, readIdentity, type SensorIdentity, storeIdentity } from './identity-file.ts';

const answerTimeoutMs = 15_000;
const backoff = { firstMs: 500, maxMs: 5000 };

export interface EnrolOptions {
  client: MonitorClient;
  stateDirectory: string;
  token: string;
  hostName: string;
  node: string;
  sensorVersion: string;
  clock: Clock;
  reporter: Reporter;
  /** How long to retry while the monitor is unreachable. */
  patienceMs: number;
}

/** Exchanges the token for a credential and stores it. Throws `enrolment.refused` or `monitor.unreachable`. */
export async function enrol(options: EnrolOptions): Promise<SensorIdentity> {
  // Before the token is used: a credential that can not be stored would be lost.
  requireWritable(options.stateDirectory);
  const answer = await askPatiently(options);
  if (answer.status !== 200 && answer.status !== 201) {
    // 409: the node has another sensor, and the token is not used.
    const advice =
      answer.status === 409
        ? 'The token stays usable for its hour.'
        : 'A token works once and for one hour; create a new one on the site in the monitor.';
    throw new CodedError(
      'enrolment.refused',
      `The monitor refused the enrolment: ${refusalMessage(answer).replace(/\.$/, '')}. ${advice}`,
    );
  }
  const identity = parseIdentity(answer.json);
  if (!identity) {
    throw new CodedError(
      'enrolment.refused',
      `The answer of ${options.client.url} is not an answer of a monitor.`,
    );
  }
  storeIdentity(options.stateDirectory, identity);
  options.reporter.info('enrolled', { site: identity.siteName, sensor: identity.sensorId });
  return identity;
}

async function askPatiently(options: EnrolOptions): Promise<MonitorAnswer> {
  const { client, clock, reporter } = options;
  const until = clock.monotonicMs() + options.patienceMs;
  const body = JSON.stringify({
    token: options.token,
    host_name: options.hostName,
    node: options.node,
    sensor_version: options.sensorVersion,
  });
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await client.request({
        method: 'POST',
        path: '/enrol',
        headers: { 'content-type': 'application/json' },
        body,
        timeoutMs: answerTimeoutMs,
      });
      if (answer.status < 500) return answer;
      if (clock.monotonicMs() >= until) return answer;
    } catch (error) {
      if (!hasCode(error, 'monitor.unreachable') || clock.monotonicMs() >= until) throw error;
      if (attempt === 1) reporter.warn('waiting for the monitor', { why: (error as Error).message });
    }
    await clock.wait(backoffMs(backoff, attempt));
  }
}

function requireWritable(stateDirectory: string): void {
  try {
    makeFolders(stateDirectory, 0o700);
    accessSync(stateDirectory, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new CodedError(
      'enrolment.unwritable',
      `The directory ${stateDirectory} is not writable: ${describeError(error)}. Give it to the sensor's user, or set ` +
        'SVC_SENSOR_STATE_DIR.',
    );
  }
}
