/**
 * A caller of the customer API that believes nothing: every answer is compared with the published OpenAPI document, with
 * no member allowed that the document does not name.
 */
import { createAnswerChecker } from '#contracts/customer-api/testing/check-answer.ts';

export interface CallOptions {
  key?: string | null;
  body?: unknown;
  /** Sent as it is instead of `body`. */
  raw?: string;
  headers?: Record<string, string>;
}

export interface Answer {
  status: number;
  headers: Headers;
  /** Parsed; null where there is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely; their shape has been checked.
  body: any;
  text: string;
}

export type Call = (method: string, path: string, options?: CallOptions) => Promise<Answer>;

const checker = createAnswerChecker();

/** Makes the caller of the server at `url`. */
export function createApiClient(url: string): Call {
  return async (method, target, options = {}) => {
    // A link names the host as well.
    const path = target.startsWith(url) ? target.slice(url.length) : target;
    const headers: Record<string, string> = { ...options.headers };
    if (options.key) headers.authorization = `Bearer ${options.key}`;
    if (options.body !== undefined) headers['content-type'] ??= 'application/json';
    const sent = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const response = await fetch(`${url}${path}`, {
      method,
      headers,
      redirect: 'manual',
      ...(sent === undefined ? {} : { body: sent }),
    });
    const text = await response.text();
    const answer = {
      status: response.status,
      headers: response.headers,
      body: text && isJson(response) ? JSON.parse(text) : null,
      text,
    };
    checker.check({
      method,
      path,
      status: response.status,
      headers: Object.fromEntries(response.headers),
      text,
    });
    return answer;
  };
}

function isJson(response: Response): boolean {
  return /[/+]json(;|$)/.test(response.headers.get('content-type') ?? '');
}
