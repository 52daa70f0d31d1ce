/** Which addresses deliveries may go to. */
import { CodedError } from '#common/errors/index.ts';
import { isGlobalUnicast, parseAddress } from '#common/ip/index.ts';

export interface TargetRules {
  /** Lab and demo worlds: http, and addresses that are not on the internet. */
  allowPrivate: boolean;
}

const urlLengthMax = 500;

/** The endpoint's address in its one spelling; throws `webhooks.invalid` for what may not be one. */
export function parseEndpointUrl(text: string, rules: TargetRules): string {
  const url = URL.parse(text.trim());
  if (url === null || text.length > urlLengthMax)
    throw invalidWebhook('Give a whole address, such as https://example.com/hook.');
  if (url.protocol !== 'https:' && !(rules.allowPrivate && url.protocol === 'http:'))
    throw invalidWebhook('The address must begin with https://, so that deliveries are encrypted.');
  if (url.username !== '' || url.password !== '')
    throw invalidWebhook('The address must not hold a name or a password.');
  const port = Number(url.port || 443);
  if (!rules.allowPrivate && port !== 443 && port < 1_024)
    throw invalidWebhook('The port must be 443, or 1024 and above.');
  const literal = parseAddress(hostOf(url));
  if (literal !== null && !isAllowedAddress(hostOf(url), rules))
    throw invalidWebhook('The address must be on the public internet.');
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

/** An error in the configuration of a webhook, with a message for the person who configures it. */
/** `field`: which of the endpoint's it is about. */
export function invalidWebhook(message: string, field = 'url'): CodedError {
  return new CodedError('webhooks.invalid', message, { field });
}
