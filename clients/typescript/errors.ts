/** What calls throw: one class for each kind of error, so that `instanceof` tells them apart. */
import type { AnswerInfo } from './answer.ts';
import type { ErrorBody, ErrorCode, ErrorReason } from './generated/api.ts';

type ErrorFields = ErrorBody['error'];

/** The API refused the call. Nothing of the request's secrets is in it. */
export class ApiError extends Error {
  override readonly name: string = 'ApiError';
  readonly status: number;
  readonly code: ErrorCode;
  /** Which case it was; undefined where the code says it all. */
  readonly reason: ErrorReason | (string & {}) | undefined;
  /** Name it when you ask about the call. */
  readonly requestId: string;
  /** The same call may succeed later. */
  readonly retryable: boolean;
  /** Where the error is explained. */
  readonly docUrl: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** Faults of single fields, of a 422. */
  readonly fields: NonNullable<ErrorFields['fields']>;
  /** Seconds after which the API wants to be asked again. */
  readonly retryAfterSeconds: number | undefined;
  /** What came with it: request id, quota, headers. */
  readonly answer: AnswerInfo;
  /** The whole `error` member, with the members that belong to this error alone. */
  readonly error: ErrorFields;

  constructor(answer: AnswerInfo, error: ErrorFields) {
    super(`${error.message} (${error.reason ?? error.code}, ${error.request_id})`);
    this.answer = answer;
    this.status = answer.status;
    this.code = error.code;
    this.reason = error.reason;
    this.requestId = error.request_id;
    this.retryable = error.retryable;
    this.docUrl = error.doc_url;
    this.details = error.details ?? {};
    this.fields = error.fields ?? [];
    this.retryAfterSeconds = answer.retryAfterSeconds;
    this.error = error;
  }
}

export class BadRequestError extends ApiError {
  override readonly name = 'BadRequestError';
}
/** The key is missing or not valid. */
export class UnauthorizedError extends ApiError {
  override readonly name = 'UnauthorizedError';
}
export class PaymentRequiredError extends ApiError {
  override readonly name = 'PaymentRequiredError';
}
export class ForbiddenError extends ApiError {
  override readonly name = 'ForbiddenError';
}
export class NotFoundError extends ApiError {
  override readonly name = 'NotFoundError';
}
/** The thing was changed since it was read with the `ifMatch` of the call. */
export class PreconditionFailedError extends ApiError {
  override readonly name = 'PreconditionFailedError';
}
export class ConflictError extends ApiError {
  override readonly name = 'ConflictError';
}
export class ValidationError extends ApiError {
  override readonly name = 'ValidationError';
}
export class RateLimitedError extends ApiError {
  override readonly name = 'RateLimitedError';
}
export class UnavailableError extends ApiError {
  override readonly name = 'UnavailableError';
}

/** No usable answer came: the network, a proxy, or the time limit. What was asked for may have happened. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** What was waited for did not happen. */
export class WaitError extends Error {
  override readonly name = 'WaitError';
}

const classes: Partial<Record<ErrorCode, typeof ApiError>> = {
  bad_request: BadRequestError,
  unauthorized: UnauthorizedError,
  payment_required: PaymentRequiredError,
  forbidden: ForbiddenError,
  not_found: NotFoundError,
  conflict: ConflictError,
  precondition_failed: PreconditionFailedError,
  validation_failed: ValidationError,
  rate_limited: RateLimitedError,
  unavailable: UnavailableError,
};

/** The error of an answer; null when the answer is not one of the API's own. */
export function readError(answer: AnswerInfo, body: unknown): ApiError | null {
  const error = (body as Partial<ErrorBody> | null)?.error;
  if (typeof error !== 'object' || error === null || typeof error.code !== 'string') return null;
  const Kind = classes[error.code] ?? ApiError;
  return new Kind(answer, error);
}
