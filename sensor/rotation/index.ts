/**
 * Holds the sensor's credential and replaces it before it expires.
 *
 * Guarantees: a new credential is on disk before it is used, and the old one stays on disk until the new one was
 * accepted, so that a sensor killed at any step restarts with a valid one. When the present credential is refused, the
 * others on disk are tried. The monitor decides when to rotate (`follow`); this host's clock is not used. An older
 * monitor never requests a rotation.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { isCredential, type SensorIdentity, storeIdentity } from '#sensor/enrolment/index.ts';
import {
  errorCode,
  type MonitorAnswer,
  type MonitorClient,
  type MonitorRequest,
  refusalMessage,
  retryAfterMs,
} from '#sensor/monitor-client/index.ts';

const answerTimeoutMs = 15_000;
const backoff = { firstMs: 10_000, maxMs: 600_000 };
/** A replica of the monitor that lags behind may not know a new credential at once. */
const refusalsMax = 5;
/** Codes of a 401 about the credential; a proxy's own 401 has none of them. */
const refusals = new Set(['unauthenticated', 'credential_replaced', 'credential_expired']);
/** Answers that only a monitor which knows the credential gives. */
const isTaken = ({ status }: MonitorAnswer) => status === 200 || status === 201 || status === 304;

export interface RotationOptions {
  client: MonitorClient;
  identity: SensorIdentity;
  stateDirectory: string;
  clock: Clock;
  reporter: Reporter;
}

export interface Rotation extends Part {
  /** Sends the valid credential with every request. */
  readonly client: MonitorClient;
  /** The newest plan's statement whether a rotation is due. */
  follow(isDue: boolean): void;
}

/** Creates the rotation; it requests no credential before `start`. */
export function createRotation(options: RotationOptions): Rotation {
  const { client, clock, reporter, stateDirectory } = options;
  const stopping = new AbortController();
  let identity = options.identity;
  let isDue = false;
  let nap = new AbortController();
  let running: Promise<void> = Promise.resolve();

  function keep(next: SensorIdentity): void {
    storeIdentity(stateDirectory, next);
    identity = next;
  }

  /** Switches to the other credential, which the monitor has accepted. */
  function adopt(credential: string): void {
    const { sensorId, siteId, siteName, credential: former, nextCredential } = identity;
    const isNext = credential === nextCredential;
    const next: SensorIdentity = {
      sensorId,
      siteId,
      siteName,
      credential,
      // A restored monitor knows only the previous one; a lagging one will know the newer one soon.
      ...(isNext ? { previousCredential: former } : { nextCredential: former }),
    };
    try {
      keep(next);
    } catch (error) {
      // The file still contains this credential, as the next or the previous one.
      identity = next;
      reporter.error('the credential in use could not be stored', { why: describeError(error) });
    }
    if (isNext) {
      isDue = false;
      reporter.info('the credential was rotated');
    } else {
      nap.abort();
      reporter.warn('the monitor knows the previous credential only, which is used again');
    }
  }

  /** Another credential to try after this answer, the most likely first. */
  function another(answer: MonitorAnswer, tried: ReadonlySet<string>): string | undefined {
    const code = errorCode(answer);
    if (code === null || !refusals.has(code)) return undefined;
    const { credential, nextCredential, previousCredential } = identity;
    // A credential older than an expired one has expired too; using it would look like a copied credential.
    const older = code === 'credential_expired' ? undefined : previousCredential;
    return [credential, nextCredential, older].find((one) => one !== undefined && !tried.has(one));
  }

  async function request(asked: MonitorRequest): Promise<MonitorAnswer> {
    const tried = new Set<string>();
    let first: MonitorAnswer | null = null;
    for (let credential: string | undefined = identity.credential; credential; ) {
      tried.add(credential);
      const answer = await client.request({ ...asked, credential });
      if (isTaken(answer) && isOther(credential)) adopt(credential);
      if (answer.status !== 401) return answer;
      first ??= answer;
      credential = another(answer, tried);
    }
    return first!;
  }

  /** Another request may have adopted or dropped it meanwhile. */
  const isOther = (credential: string) =>
    credential === identity.nextCredential || credential === identity.previousCredential;

  /** Requests a new credential. Returns null when done, otherwise how long to wait. */
  async function obtain(failures: number): Promise<number | null> {
    const answer = await request({
      method: 'POST',
      path: '/credential',
      headers: { 'content-type': 'application/json' },
      body: '{}',
      timeoutMs: answerTimeoutMs,
      signal: stopping.signal,
    });
    if (answer.status === 404 || answer.status === 409) {
      isDue = false;
      return null;
    }
    const { credential } = (answer.json ?? {}) as { credential?: unknown };
    if (answer.status !== 201 || !isCredential(credential)) {
      if (failures === 0) reporter.warn('no new credential yet, retrying', { why: refusalMessage(answer) });
      return Math.max(backoffMs(backoff, failures + 1), retryAfterMs(answer));
    }
    keep({ ...identity, nextCredential: credential });
    return 0;
  }

  /** Uses the new credential for the first time, in a request that changes nothing. */
  async function prove(nextCredential: string, failures: number): Promise<number> {
    const answer = await client.request({
      method: 'GET',
      path: '/plan',
      credential: nextCredential,
      timeoutMs: answerTimeoutMs,
      signal: stopping.signal,
    });
    if (isTaken(answer)) {
      if (isOther(nextCredential)) adopt(nextCredential);
      return 0;
    }
    if (answer.status === 401 && failures + 1 >= refusalsMax) {
      const { nextCredential: _, ...without } = identity;
      keep({ ...without, previousCredential: nextCredential });
      reporter.warn('the new credential was refused and is dropped', { why: refusalMessage(answer) });
    }
    return backoffMs(backoff, failures + 1);
  }

  async function run(): Promise<void> {
    let failures = 0;
    while (!stopping.signal.aborted) {
      let waitMs: number | null = null;
      try {
        if (identity.nextCredential !== undefined) waitMs = await prove(identity.nextCredential, failures);
        else if (isDue) waitMs = await obtain(failures);
      } catch (error) {
        if (stopping.signal.aborted) return;
        if (failures === 0)
          reporter.warn('the credential could not be rotated, retrying', { why: describeError(error) });
        waitMs = backoffMs(backoff, failures + 1);
      }
      failures = waitMs ? failures + 1 : 0;
      if (waitMs === null) {
        if (!isDue) await untilWoken();
      } else if (waitMs > 0) await clock.wait(waitMs, stopping.signal);
    }
  }

  async function untilWoken(): Promise<void> {
    const signal = AbortSignal.any([nap.signal, stopping.signal]);
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    if (nap.signal.aborted) nap = new AbortController();
  }

  return {
    name: 'rotation',
    client: { url: client.url, request },
    follow(next) {
      isDue = next;
      if (next) nap.abort();
    },
    async start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
