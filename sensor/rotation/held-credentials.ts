/**
 * The credentials of one sensor, in memory as on disk, and requests that carry the one which the monitor knows.
 *
 * A credential that the monitor accepted is the first to be used; the former one stays on disk beside it.
 */
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type SensorIdentity, storeIdentity } from '#sensor/enrolment/index.ts';
import {
  errorCode,
  type MonitorAnswer,
  type MonitorClient,
  type MonitorRequest,
} from '#sensor/monitor-client/index.ts';

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
