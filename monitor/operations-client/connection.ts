import { CodedError } from '#common/errors/index.ts';

/** The connection as people may see it: everything but the token. */
export interface ConnectionView {
  baseUrl: string;
  isEnabled: boolean;
  /** Whether the inventory is imported by itself, and not by Sync now alone (NET-4.7). */
  isSyncAutomatic: boolean;
  projectName: string | null;
  capabilities: Readonly<Record<string, true | number>>;
  checkedAtMs: number | null;
  /** A fixed sentence; null after a check that succeeded. */
  checkError: string | null;
}

export interface SaveConnectionInput {
  baseUrl: string;
  /** Null keeps the stored token; it can't be read back, so a form leaves it empty. */
  token: string | null;
  isEnabled: boolean;
  /** Default true. */
  isSyncAutomatic?: boolean;
}

/** Canonical base URL; throws `connection.invalid` with what to mend. */
export function parseBaseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.password) {
    throw invalid('The base URL must start with http:// or https:// and hold no name or password.');
  }
  if (url.search || url.hash) throw invalid('The base URL must not hold a query or a fragment.');
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '');
}

/** A token's shape only; whether it works is for discovery to say. */
export function parseToken(text: string): string {
  const token = text.trim();
  if (!/^svcadm_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/.test(token)) {
    throw invalid('This is no admin API token. Copy the whole token that operations showed, svcadm_…');
  }
  return token;
}

function invalid(message: string): CodedError {
  return new CodedError('connection.invalid', message);
}
