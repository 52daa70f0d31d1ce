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
export interface RotationOptions {
  client: MonitorClient;
  identity: SensorIdentity;
  stateDirectory: string;
  clock: Clock;
  reporter: Reporter;
}

export class Rotation implements Part {
  readonly name = 'rotation';
  /** Sends the valid credential with every request. */
  readonly client: MonitorClient;
  readonly #options: RotationOptions;
  readonly #held: HeldCredentials;
  readonly #stopping = new AbortController();
  #isDue = false;
  #nap = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: RotationOptions) {
    this.#options = options;
    const { client, identity, stateDirectory, reporter } = options;
    this.#held = new HeldCredentials({
      client,
      identity,
      stateDirectory,
      reporter,
      onAdopted: (which) => {
        if (which === 'next') this.#isDue = false;
        else this.#nap.abort();
      },
    });
    this.client = { url: client.url, request: (asked) => this.#held.request(asked) };
  }

  /** The newest plan's statement whether a rotation is due. */
  follow(isDue: boolean): void {
    this.#isDue = isDue;
    if (isDue) this.#nap.abort();
  }

  async start(): Promise<void> {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, reporter } = this.#options;
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      let waitMs: number | null = null;
      try {
        const { next } = this.#held;
        if (next !== undefined) waitMs = await this.#prove(next, failures);
        else if (this.#isDue) waitMs = await this.#obtain(failures);
      } catch (error) {
        if (signal.aborted) return;
        if (failures === 0)
          reporter.warn('the credential could not be rotated, retrying', { why: describeError(error) });
        waitMs = backoffMs(backoff, failures + 1);
      }
      failures = waitMs ? failures + 1 : 0;
      if (waitMs === null) {
        if (!this.#isDue) await this.#untilWoken();
      } else if (waitMs > 0) await clock.wait(waitMs, signal);
    }
  }

  /** Requests a new credential. Returns null when done, otherwise how long to wait. */
  async #obtain(failures: number): Promise<number | null> {
    const answer = await this.#held.request({
      method: 'POST',
      path: '/credential',
      headers: { 'content-type': 'application/json' },
      body: '{}',
      timeoutMs: answerTimeoutMs,
      signal: this.#stopping.signal,
    });
    if (answer.status === 404 || answer.status === 409) {
      this.#isDue = false;
      return null;
    }
    const { credential } = (answer.json ?? {}) as { credential?: unknown };
    if (answer.status !== 201 || !isCredential(credential)) {
      if (failures === 0)
        this.#options.reporter.warn('no new credential yet, retrying', { why: refusalMessage(answer) });
      return Math.max(backoffMs(backoff, failures + 1), retryAfterMs(answer));
    }
    this.#held.keepNext(credential);
    return 0;
  }

  /** Uses the new credential for the first time, in a request that changes nothing. Returns how long to wait. */
  async #prove(nextCredential: string, failures: number): Promise<number> {
    const answer = await this.#options.client.request({
      method: 'GET',
      path: '/plan',
      credential: nextCredential,
      timeoutMs: answerTimeoutMs,
      signal: this.#stopping.signal,
    });
    this.#held.adoptTaken(nextCredential, answer);
    if (isTaken(answer)) return 0;
    if (answer.status === 401 && failures + 1 >= refusalsMax) {
      this.#held.dropNext(nextCredential);
      this.#options.reporter.warn('the new credential was refused and is dropped', {
        why: refusalMessage(answer),
      });
    }
    return backoffMs(backoff, failures + 1);
  }

  async #untilWoken(): Promise<void> {
    const signal = AbortSignal.any([this.#nap.signal, this.#stopping.signal]);
    if (!signal.aborted)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    if (this.#nap.signal.aborted) this.#nap = new AbortController();
  }
}

// The credentials of one sensor, in memory as on disk, and requests that carry the one which the monitor knows.
//
// A credential that the monitor accepted is the first to be used; the former one stays on disk beside it.

/** Codes of a 401 about the credential; a proxy's own 401 has none of them. */
const refusals = new Set(['unauthenticated', 'credential_replaced', 'credential_expired']);

/** Answers that only a monitor which knows the credential gives. */
export function isTaken({ status }: MonitorAnswer): boolean {
  return status === 200 || status === 201 || status === 304;
}

interface HeldCredentialsDeps {
  client: MonitorClient;
  identity: SensorIdentity;
  stateDirectory: string;
  reporter: Reporter;
  /** Another credential is in use now: the next one, or else the previous one. */
  onAdopted(which: 'next' | 'previous'): void;
}

export class HeldCredentials {
  readonly #deps: HeldCredentialsDeps;
  #identity: SensorIdentity;

  constructor(deps: HeldCredentialsDeps) {
    this.#deps = deps;
    this.#identity = deps.identity;
  }

  /** The new credential that was not used yet. */
  get next(): string | undefined {
    return this.#identity.nextCredential;
  }

  /** Stores a new credential. Throws when the disk fails. */
  keepNext(nextCredential: string): void {
    this.#keep({ ...this.#identity, nextCredential });
  }

  /** The new credential was refused: it is tried last from now on. */
  dropNext(nextCredential: string): void {
    const { nextCredential: _, ...without } = this.#identity;
    this.#keep({ ...without, previousCredential: nextCredential });
  }

  /** Sends a request with the credential in use, and after its refusal with the others. */
  async request(asked: MonitorRequest): Promise<MonitorAnswer> {
    const tried = new Set<string>();
    let first: MonitorAnswer | null = null;
    for (let credential: string | undefined = this.#identity.credential; credential; ) {
      tried.add(credential);
      const answer = await this.#deps.client.request({ ...asked, credential });
      this.adoptTaken(credential, answer);
      if (answer.status !== 401) return answer;
      first ??= answer;
      credential = this.#another(answer, tried);
    }
    return first!;
  }

  /** Uses this credential from now on if the monitor accepted it. Another request may have adopted or dropped it. */
  adoptTaken(credential: string, answer: MonitorAnswer): void {
    const { nextCredential, previousCredential } = this.#identity;
    if (isTaken(answer) && (credential === nextCredential || credential === previousCredential))
      this.#adopt(credential);
  }

  #adopt(credential: string): void {
    const { reporter, onAdopted } = this.#deps;
    const { sensorId, siteId, siteName, credential: former, nextCredential } = this.#identity;
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
      this.#keep(next);
    } catch (error) {
      // The file still contains this credential, as the next or the previous one.
      this.#identity = next;
      reporter.error('the credential in use could not be stored', { why: describeError(error) });
    }
    onAdopted(isNext ? 'next' : 'previous');
    if (isNext) reporter.info('the credential was rotated');
    else reporter.warn('the monitor knows the previous credential only, which is used again');
  }

  /** Another credential to try after this answer, the most likely first. */
  #another(answer: MonitorAnswer, tried: ReadonlySet<string>): string | undefined {
    const code = errorCode(answer);
    if (code === null || !refusals.has(code)) return undefined;
    const { credential, nextCredential, previousCredential } = this.#identity;
    // A credential older than an expired one has expired too; using it would look like a copied credential.
    const older = code === 'credential_expired' ? undefined : previousCredential;
    return [credential, nextCredential, older].find((one) => one !== undefined && !tried.has(one));
  }

  #keep(next: SensorIdentity): void {
    storeIdentity(this.#deps.stateDirectory, next);
    this.#identity = next;
  }
}
