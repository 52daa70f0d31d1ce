/** What an endpoint and its deliveries are, and which addresses may be one. */
import { CodedError } from '#common/errors/index.ts';
import { isGlobalUnicast, parseAddress } from '#common/ip/index.ts';
import { webhookEvents } from '#contracts/customer-api/index.ts';

export interface Endpoint {
  id: number;
  organizationId: number;
  /** null: every workspace, and the organization itself. */
  tenantId: number | null;
  url: string;
  description: string;
  eventTypes: string[];
  createdAt: Date;
  disabledAt: Date | null;
  disabledReason: 'gone' | 'owner' | null;
  consecutiveFailures: number;
  failingSince: Date | null;
  /** Until when deliveries carry the former secret's signature too. */
  previousSecretUntil: Date | null;
}

export interface Delivery {
  id: number;
  endpointId: number;
  /** The `webhook-id`. */
  publicId: string;
  type: string;
  status: 'pending' | 'delivered' | 'failed' | 'cancelled';
  attempts: number;
  nextAttemptAt: Date;
  occurredAt: Date;
  lastAt: Date | null;
  lastStatusCode: number | null;
  lastError: string | null;
  lastDurationMs: number | null;
}

export interface TargetRules {
  /** Lab and demo worlds: http, and addresses that are not on the internet. */
  allowPrivate: boolean;
}

const urlLengthMax = 500;

/** The endpoint's address in its one spelling; throws `webhooks.invalid` for what may not be one. */
export function parseEndpointUrl(text: string, rules: TargetRules): string {
  const url = URL.parse(text.trim());
  if (url === null || text.length > urlLengthMax)
    throw invalid('Give a whole address, such as https://example.com/hook.');
  if (url.protocol !== 'https:' && !(rules.allowPrivate && url.protocol === 'http:'))
    throw invalid(
      'The address must begin with https://, so that nobody on the way reads or changes what we send.',
    );
  if (url.username !== '' || url.password !== '')
    throw invalid('The address must not hold a name or a password.');
  const port = Number(url.port || 443);
  if (!rules.allowPrivate && port !== 443 && port < 1_024)
    throw invalid('The port must be 443, or 1024 and above.');
  const literal = parseAddress(hostOf(url));
  if (literal !== null && !isAllowedAddress(hostOf(url), rules))
    throw invalid('The address must be on the public internet.');
  url.hash = '';
  return url.href;
}

/** The host without the brackets of an IPv6 address. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** True for an address that deliveries may go to. */
export function isAllowedAddress(address: string, rules: TargetRules): boolean {
  if (rules.allowPrivate) return true;
  const bytes = parseAddress(address);
  return bytes !== null && isGlobalUnicast(bytes);
}

/** The chosen events, each once, in their usual order; throws `webhooks.invalid` when there is none or an unknown one. */
export function parseEventTypes(chosen: readonly string[]): string[] {
  const known: readonly string[] = webhookEvents.map((event) => event.type);
  const unknown = chosen.find((type) => !known.includes(type));
  if (unknown !== undefined) throw invalid(`There is no event ${unknown}.`);
  const types = known.filter((type) => chosen.includes(type));
  if (types.length === 0) throw invalid('Choose at least one event.');
  return types;
}

export function invalid(message: string): CodedError {
  return new CodedError('webhooks.invalid', message);
}
