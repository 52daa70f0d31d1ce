/** What an operation on networks refuses, in words for the customer. */
import { CodedError } from '#common/errors/index.ts';
import { allowedRanges, prefixLengthMax, prefixLengthMin } from './network.ts';

/** One answer for another's, a deleted and a nonexistent network. */
export function noSuchNetwork(): CodedError {
  return new CodedError('networks.not_found', 'There is no such network.');
}

/** The same for the server that a network operation names. */
export function noSuchServer(): CodedError {
  return new CodedError('networks.server_not_found', 'There is no such server.');
}

export function cidrNotAllowed(given: string): CodedError {
  return new CodedError(
    'networks.cidr_not_allowed',
    `${given} can't be a private network. Use a block of /${prefixLengthMin} to /${prefixLengthMax} within ${allowedRanges.join(', ')}, with no host bits set.`,
    { allowedRanges, prefixLengthMin, prefixLengthMax },
  );
}

export function cidrOverlap(given: string): CodedError {
  return new CodedError(
    'networks.cidr_overlap',
    `${given} shares addresses with another network of this account. Choose another block, or name none to be given a free one.`,
  );
}

/** `limit` names what ran out. */
export function limitExceeded(limit: string, max: number, used: number, message: string): CodedError {
  return new CodedError('networks.limit', message, { limit, max, used });
}

/** A field of the request that can't be so. */
export function invalidField(path: string, code: string, message: string, allowed?: unknown[]): CodedError {
  return new CodedError('networks.invalid', 'Some fields are not as they must be; see `fields`.', {
    fields: [{ path, code, message, ...(allowed ? { allowed } : {}) }],
  });
}
