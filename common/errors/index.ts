/**
 * Errors with a stable code, a message for the caller, and internal details.
 *
 * `message` is public: it says what happened and what to do. Causes stay inside and go to the log only.
 */
export class CodedError extends Error {
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: string, message: string, details: Record<string, unknown> = {}, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CodedError';
    this.code = code;
    this.details = details;
  }
}

/** True for a `CodedError` with this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof CodedError && error.code === code;
}

/** One line about any thrown value, without its stack. */
export function describeError(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return describeError(error.errors[0]);
  return error instanceof Error ? error.message : String(error);
}
