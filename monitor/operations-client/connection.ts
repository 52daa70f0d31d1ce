import { CodedError } from '#common/errors/index.ts';

/** The connection as shown to people: without the token. */
export interface ConnectionView {
  baseUrl: string;
  isEnabled: boolean;
  /** The inventory is imported automatically, not only by Sync now (NET-4.7). */
  isSyncAutomatic: boolean;
  projectName: string | null;
  capabilities: Readonly<Record<string, true | number>>;
  checkedAtMs: number | null;
  /** A fixed sentence; null after a check that succeeded. */
  checkError: string | null;
}

export interface SaveConnectionInput {
  baseUrl: string;
  /** Null keeps the stored token; it can not be read back, so forms leave it empty. */
  token: string | null;
  isEnabled: boolean;
  /** Default true. */
  isSyncAutomatic?: boolean;
}

/** Canonical base URL; throws `connection.invalid` with the correction. */
export function parseBaseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.password) {
    throw invalid(
      'The base URL must start with http:// or https:// and must not contain a user name or password.',
    );
  }
  if (url.search || url.hash) throw invalid('The base URL must not contain a query or a fragment.');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** Checks only the form of a token; discovery checks whether it works. */
export function parseToken(text: string): string {
  const token = text.trim();
  if (!/^svcadm_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/.test(token)) {
    throw invalid('This is not an admin API token. Copy the whole token from operations, svcadm_…');
  }
  return token;
}

function invalid(message: string): CodedError {
  return new CodedError('connection.invalid', message);
}
