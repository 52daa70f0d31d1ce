/** Errors as callers see them: `{"error": {code, reason?, message, request_id, retryable, doc_url, details?, …}}`. */

export interface ErrorFields {
  code: string;
  message: string;
  reason?: string;
  details?: Record<string, unknown>;
  /** Per-field faults of a 422. */
  fields?: { path: string; code: string; message: string; allowed?: unknown[] }[];
  retryable?: boolean;
  /** Further members put directly into `error`, such as `order_id` of a 402. */
  extra?: Record<string, unknown>;
}

/** Thrown by routes and operations' doors; becomes the answer. Nothing in it may be secret. */
export class HttpError extends Error {
  readonly status: number;
  readonly fields: ErrorFields;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, fields: ErrorFields, headers: Record<string, string> = {}) {
    super(fields.message);
    this.name = 'HttpError';
    this.status = status;
    this.fields = fields;
    this.headers = headers;
  }
}

export interface ErrorBody {
  error: Record<string, unknown> & { code: string; message: string; request_id: string };
}

/** The JSON body of an error. */
export function errorBody(fields: ErrorFields, requestId: string): ErrorBody {
  return {
    error: {
      code: fields.code,
      ...(fields.reason === undefined ? {} : { reason: fields.reason }),
      message: fields.message,
      request_id: requestId,
      retryable: fields.retryable ?? false,
      doc_url: `/docs/api/#error-${fields.reason ?? fields.code}`,
      ...(fields.details === undefined ? {} : { details: fields.details }),
      ...(fields.fields === undefined ? {} : { fields: fields.fields }),
      ...fields.extra,
    },
  };
}
