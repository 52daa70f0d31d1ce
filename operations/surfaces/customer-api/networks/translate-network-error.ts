import type { CodedError } from '#common/errors/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { notFound } from '../select-tenant.ts';
import { type InputFault, invalidFields } from '../validate-input.ts';

/** What a refusal of `operations/networks` and `operations/bandwidth` is on the wire; anything else is passed on. */
export function translateNetworkError(error: CodedError): unknown {
  const { code, message, details } = error;
  const conflict = (reason: string, extra: object = {}, headers = {}) =>
    new HttpError(409, { code: 'conflict', reason, message, ...extra }, headers);
  const invalid = (reason: string, extra: object = {}) =>
    new HttpError(422, { code: 'validation_failed', reason, message, ...extra });
  switch (code) {
    case 'networks.not_found':
    case 'networks.server_not_found':
      return notFound();
    case 'bandwidth.invalid':
    case 'networks.invalid':
      return invalidFields(details.fields as InputFault[], 'invalid_fields', message);
    case 'networks.immutable':
      return invalidFields(details.fields as InputFault[], 'immutable_field', message);
    case 'networks.cidr_not_allowed':
      return invalid('cidr_not_allowed', {
        details: {
          allowed_ranges: details.allowedRanges,
          min_prefix: details.prefixLengthMin,
          max_prefix: details.prefixLengthMax,
        },
      });
    case 'networks.cidr_overlap':
      return invalid('cidr_overlap');
    case 'networks.limit':
      return invalid('limit_exceeded', {
        details: { limit: details.limit, max: details.max, used: details.used },
      });
    case 'networks.in_use': {
      const servers = { details: { servers: details.servers } };
      return details.isDetaching
        ? conflict('network_in_use', { ...servers, retryable: true }, { 'retry-after': '5' })
        : conflict('network_in_use', servers);
    }
    case 'networks.already_attached':
      return conflict('already_attached', { details: { ip: details.ip } });
    case 'networks.detaching':
      return conflict('already_attached', { retryable: true }, { 'retry-after': '2' });
    case 'networks.ip_in_use':
      return conflict('ip_in_use');
    case 'networks.last_interface':
      return conflict('last_interface');
    case 'networks.not_ready':
      return details.isOnItsWay
        ? conflict('server_not_ready', { retryable: true }, { 'retry-after': '2' })
        : conflict('server_not_ready');
    default:
      return error;
  }
}
