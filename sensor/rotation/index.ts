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
import { isCredential, type SensorIdentity } from '#sensor/enrolment/index.ts';
import { type MonitorClient, refusalMessage, retryAfterMs } from '#sensor/monitor-client/index.ts';
import { HeldCredentials, isTaken } from './held-credentials.ts';

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
