import type { CodedError } from '#common/errors/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { notFound } from '../select-tenant.ts';
import { invalidFields } from '../validate-input.ts';

/** What a refusal about kept addresses and reverse names is on the wire; undefined for every other. */
export function translateAddressError({ code, message, details }: CodedError): HttpError | undefined {
  const conflict = (reason: string, extra?: Record<string, unknown>) =>
    new HttpError(409, { code: 'conflict', reason, message, ...(extra && { details: extra }) });
  const invalid = (reason: string, more = {}) =>
    new HttpError(422, { code: 'validation_failed', reason, message, ...more });
  switch (code) {
    case 'addresses.not_found':
    case 'reverse_dns.not_found':
      return notFound();
    case 'addresses.invalid':
      return invalidFields([{ path: String(details.field), code: 'unknown_value', message }]);
    case 'addresses.limit':
      return invalid('limit_exceeded', { details });
    case 'addresses.exhausted':
      return capacityUnavailable(message);
    case 'addresses.kept':
      return conflict('address_kept', { address_id: details.id });
    case 'addresses.attached':
      return conflict('address_attached', { server_id: details.serverId });
    case 'addresses.available':
      return conflict('address_available');
    case 'addresses.primary':
      return conflict('primary_address');
    case 'reverse_dns.invalid':
      return invalidFields([{ path: 'reverse_dns', code: 'pattern', message }]);
    case 'reverse_dns.not_confirmed':
      return invalid('reverse_dns_not_confirmed');
    case 'reverse_dns.unsupported':
      return invalid('reverse_dns_not_supported');
    default:
      return undefined;
  }
}

export function capacityUnavailable(message: string): HttpError {
  return new HttpError(
    503,
    { code: 'unavailable', reason: 'capacity_unavailable', message, retryable: true },
    { 'retry-after': '60' },
  );
}
