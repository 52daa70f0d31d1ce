/** What an answer says beside its body: request id, quota, `ETag`. */

export interface Quota {
  /** Free requests of the month. */
  limit: number;
  /** Of them, what is left; never below 0. */
  remaining: number;
  /** Requests of the month, including this one. */
  used: number;
}

export interface AnswerInfo {
  status: number;
  /** Name it when you ask about the call. */
  requestId: string | null;
  /** For `ifMatch`; null where the answer is no version of a thing. */
  etag: string | null;
  /** Null for an answer that was not counted. */
  quota: Quota | null;
  /** The workspace of the call. */
  tenantId: number | null;
  /** True when an earlier call with the same idempotency key did the work. */
  isReplayed: boolean;
  /** Seconds after which the API wants to be asked again. */
  retryAfterSeconds: number | undefined;
  /** All of its headers, such as `RateLimit`. */
  headers: Headers;
}

const answers = new WeakMap<object, AnswerInfo>();

/** What came with a body that a call returned; throws for anything else. */
export function answerOf(body: object): AnswerInfo {
  const answer = answers.get(body);
  if (answer === undefined) throw new TypeError('this is not what a call of the client returned');
  return answer;
}

export function keepAnswer(body: unknown, answer: AnswerInfo): unknown {
  if (typeof body === 'object' && body !== null) answers.set(body, answer);
  return body;
}

export function readAnswer({ status, headers }: Response): AnswerInfo {
  const number = (name: string) => {
    const text = headers.get(name);
    return text !== null && /^\d+$/.test(text) ? Number(text) : null;
  };
  const [limit, remaining, used] = ['limit', 'remaining', 'used'].map((name) =>
    number(`x-api-quota-${name}`),
  );
  return {
    status,
    requestId: headers.get('x-request-id'),
    etag: headers.get('etag'),
    quota: limit == null || remaining == null || used == null ? null : { limit, remaining, used },
    tenantId: number('x-tenant-id'),
    isReplayed: headers.get('idempotent-replayed') === 'true',
    retryAfterSeconds: number('retry-after') ?? undefined,
    headers,
  };
}
