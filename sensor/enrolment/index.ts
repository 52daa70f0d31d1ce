/**
 * Enrolment: exchanges a one-time token for the sensor's first credential and stores it in a file of mode 0600.
 *
 * Guarantees: the credential is on disk before `enrol` returns, and a stored one is never overwritten. A used token can
 * not be retried, so a lost answer needs a new token; the error says so.
 */
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { type MonitorAnswer, type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';

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

// The file `credential.json` in the sensor's directory: identity and credentials.

/** Data from the monitor's enrolment answer. */
export interface SensorIdentity {
  sensorId: number;
  siteId: number;
  siteName: string;
  credential: string;
  /** Replacement for `credential`, issued and possibly used already. */
  nextCredential?: string;
  /** The credential before `credential`: a monitor restored from a backup may know only this one. */
  previousCredential?: string;
}

/** The stored identity, or null when this sensor was never enrolled. Throws when the file can not be read. */
export function readIdentity(stateDirectory: string): SensorIdentity | null {
  const path = credentialPath(stateDirectory);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new CodedError(
      'enrolment.unreadable',
      `The credential ${path} can not be read. Check its owner and mode.`,
    );
  }
  const identity = parseIdentity(parseJson(text));
  if (!identity) {
    throw new CodedError(
      'enrolment.damaged',
      `The credential ${path} is damaged. Remove it and enrol again with a new token.`,
    );
  }
  return identity;
}

/** Written under another name, synced, then renamed, so that a crash leaves the old file or the new one. */
export function storeIdentity(stateDirectory: string, identity: SensorIdentity): void {
  const path = credentialPath(stateDirectory);
  const { nextCredential, previousCredential } = identity;
  const body = {
    sensor_id: identity.sensorId,
    site_id: identity.siteId,
    site_name: identity.siteName,
    credential: identity.credential,
    ...(nextCredential === undefined ? {} : { next_credential: nextCredential }),
    ...(previousCredential === undefined ? {} : { previous_credential: previousCredential }),
  };
  const file = openSync(`${path}.new`, 'w', 0o600);
  chmodSync(`${path}.new`, 0o600);
  writeSync(file, `${JSON.stringify(body, null, 2)}\n`);
  fsyncSync(file);
  closeSync(file);
  renameSync(`${path}.new`, path);
  const directory = openSync(stateDirectory, 'r');
  fsyncSync(directory);
  closeSync(directory);
}

export function parseIdentity(body: unknown): SensorIdentity | null {
  const { sensor_id, site_id, site_name, credential, next_credential, previous_credential } = (body ??
    {}) as Record<string, unknown>;
  if (!Number.isSafeInteger(sensor_id) || !Number.isSafeInteger(site_id)) return null;
  if (!isCredential(credential)) return null;
  return {
    sensorId: sensor_id as number,
    siteId: site_id as number,
    siteName: typeof site_name === 'string' ? site_name : '',
    credential,
    ...(isCredential(next_credential) ? { nextCredential: next_credential } : {}),
    ...(isCredential(previous_credential) ? { previousCredential: previous_credential } : {}),
  };
}

/** True for a valid header value; other characters could split the request. */
export function isCredential(value: unknown): value is string {
  return typeof value === 'string' && /^svcsen_[A-Za-z0-9_-]{1,200}$/.test(value);
}

function credentialPath(stateDirectory: string): string {
  return join(stateDirectory, 'credential.json');
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
