/** Sends capture files of attacks that are over, one at a time, until the monitor has stored or refused each. */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { evidenceContentType, incidentUnknownCode } from '#contracts/sensor-api/evidence.ts';
import { errorCode, type MonitorClient, refusalMessage, retryAfterMs } from '#sensor/monitor-client/index.ts';
import type { Spool } from '#sensor/spool/index.ts';
import type { EvidenceFiles } from './evidence-files.ts';

/** The monitor may store it in a store far away. */
const answerTimeoutMs = 45_000;

type SendOutcome =
  | { kind: 'stored' }
  /** Never to be sent again. */
  | { kind: 'refused'; message: string }
  /** The monitor does not know the incident yet. */
  | { kind: 'unknown'; message: string }
  | { kind: 'trouble'; message: string; waitMs: number };

async function sendFile(
  client: MonitorClient,
  id: string,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<SendOutcome> {
  try {
    const answer = await client.request({
      method: 'POST',
      path: `/evidence/${id}`,
      headers: { 'content-type': evidenceContentType, 'content-encoding': 'zstd' },
      body: bytes,
      timeoutMs: answerTimeoutMs,
      signal,
    });
    const message = refusalMessage(answer);
    const code = errorCode(answer);
    if (answer.status === 201) return { kind: 'stored' };
    if (answer.status === 409 && code === incidentUnknownCode) return { kind: 'unknown', message };
    // A proxy's page of that status is not the monitor's word.
    if ([400, 404, 413].includes(answer.status) && code !== null) return { kind: 'refused', message };
    return { kind: 'trouble', message, waitMs: retryAfterMs(answer) };
  } catch (error) {
    return { kind: 'trouble', message: describeError(error), waitMs: 0 };
  }
}

const lookEveryMs = 5000;
const firstRetryMs = 5000;
const lastRetryMs = 600_000;
/** An incident that the monitor does not know for so long is another node's, or was set aside. */
const unknownMsMax = 86_400_000;
/** How long a request in flight may go on when the sensor stops. */
const stopGraceMs = 2000;

interface Attempts {
  nextAtMs: number;
  waitMs: number;
  /** Since when the monitor says that it does not know the incident. */
  unknownSinceMs: number | null;
}

interface SenderDeps {
  files: EvidenceFiles;
  client: MonitorClient;
  spool: Pick<Spool, 'oldest'>;
  clock: Clock;
  reporter: Reporter;
}

export class Sender {
  readonly #deps: SenderDeps;
  readonly #stopping = new AbortController();
  readonly #inFlight = new AbortController();
  readonly #attempts = new Map<string, Attempts>();
  #takes = false;
  /** Tells which files have to wait; null until the incidents that go on are known. */
  #mustWait: ((id: string) => boolean) | null = null;
  #isSending = false;
  /** Why the newest file could not be sent; null: it could. */
  #trouble: string | null = null;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: SenderDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    const { clock } = this.#deps;
    this.#stopping.abort();
    const grace = new AbortController();
    await Promise.race([this.#running, clock.wait(this.#isSending ? stopGraceMs : 0, grace.signal)]);
    grace.abort();
    this.#inFlight.abort();
    await this.#running;
  }

  announce(takes: boolean): void {
    this.#takes = takes;
  }

  get trouble(): string | null {
    return this.#trouble;
  }

  follow(mustWait: (id: string) => boolean): void {
    this.#mustWait = mustWait;
  }

  async #run(): Promise<void> {
    const { clock, reporter } = this.#deps;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await clock.wait(lookEveryMs, signal);
      if (signal.aborted) return;
      try {
        await this.#sendDue();
      } catch (error) {
        reporter.error('capture files of attacks can not be sent', { why: describeError(error) });
      }
    }
  }

  async #sendDue(): Promise<void> {
    const { files, spool, clock } = this.#deps;
    const { signal } = this.#stopping;
    if (!this.#takes || !this.#mustWait) return;
    for (const id of files.ids()) {
      if (signal.aborted || this.#mustWait(id) || !this.#isDue(id)) continue;
      // Incidents go first: the monitor takes files of incidents that it knows.
      if (spool.oldest()?.kind === 'incidents') return;
      const bytes = await this.#read(id);
      if (!bytes) continue;
      this.#isSending = true;
      const outcome = await sendFile(this.#deps.client, id, bytes, this.#inFlight.signal);
      this.#isSending = false;
      if (this.#inFlight.signal.aborted) return;
      await this.#take(id, outcome, clock.monotonicMs());
    }
  }

  /** Null where the file is gone. */
  async #read(id: string): Promise<Uint8Array | null> {
    const { files, reporter } = this.#deps;
    try {
      return await files.read(id);
    } catch (error) {
      reporter.error('a capture file of an attack can not be read and is dropped', {
        incident: id,
        why: describeError(error),
      });
      await files.remove(id).catch(() => {});
      return null;
    }
  }

  #isDue(id: string): boolean {
    return this.#deps.clock.monotonicMs() >= (this.#attempts.get(id)?.nextAtMs ?? 0);
  }

  async #take(id: string, outcome: SendOutcome, nowMs: number): Promise<void> {
    const { files, reporter } = this.#deps;
    if (outcome.kind === 'stored' || outcome.kind === 'refused') {
      if (outcome.kind === 'refused')
        reporter.warn('the monitor refused a capture file of an attack', {
          incident: id,
          why: outcome.message,
        });
      else this.#noteWorks();
      this.#attempts.delete(id);
      await files.remove(id);
      return;
    }
    const before = this.#attempts.get(id);
    const isUnknown = outcome.kind === 'unknown';
    const unknownSinceMs = isUnknown ? (before?.unknownSinceMs ?? nowMs) : null;
    if (unknownSinceMs !== null && nowMs - unknownSinceMs >= unknownMsMax) {
      reporter.warn('a capture file of an attack was dropped: the monitor does not know its incident', {
        incident: id,
      });
      this.#attempts.delete(id);
      await files.remove(id);
      return;
    }
    const waitMs = Math.min(lastRetryMs, (before?.waitMs ?? firstRetryMs / 2) * 2);
    const asked = outcome.kind === 'trouble' ? outcome.waitMs : 0;
    this.#attempts.set(id, { waitMs, unknownSinceMs, nextAtMs: nowMs + Math.max(waitMs, asked) });
    if (outcome.kind === 'trouble') this.#noteTrouble(outcome.message);
  }

  #noteTrouble(why: string): void {
    if (this.#trouble === null)
      this.#deps.reporter.warn('capture files of attacks do not reach the monitor, trying again', { why });
    this.#trouble = why;
  }

  #noteWorks(): void {
    if (this.#trouble !== null) this.#deps.reporter.info('capture files of attacks reach the monitor again');
    this.#trouble = null;
  }
}
