/** The file `credential.json` in the sensor's directory: identity and credentials. */
import { chmodSync, closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';

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
