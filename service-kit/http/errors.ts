import { STATUS_CODES } from 'node:http';

/** Errors as callers see them: `{"error": {code, reason?, message, request_id, retryable, doc_url, details?, …}}`. */

export interface ErrorFields {
  code: string;
  message: string;
  reason?: string;
  details?: Record<string, unknown>;
  /** Per-field faults of a 422. */
  fields?: { path: string; code: string; message: string; allowed?: unknown[] }[];
  retryable?: boolean;
  /** Members that only the problem document has, or has otherwise. */
  problem?: Record<string, unknown>;
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

/** The same members as RFC 9457 names them. */
export function problemBody(fields: ErrorFields, status: number, requestId: string): Record<string, unknown> {
  const { message, doc_url: type, ...rest } = errorBody(fields, requestId).error;
  const title = STATUS_CODES[status] ?? 'Error';
  return { type, title, status, detail: message, instance: requestId, ...rest, ...fields.problem };
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
