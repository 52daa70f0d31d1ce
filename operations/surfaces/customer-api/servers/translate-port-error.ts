import type { CodedError } from '#common/errors/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { notFound } from '../select-tenant.ts';
import { protectDisabled } from './incidents.routes.ts';

/** What a refused request of a port scan is on the wire; null for any other error. */
export function translatePortError({ code, message, details }: CodedError): HttpError | null {
  switch (code) {
    case 'port_scans.not_found':
      return notFound();
    case 'port_scans.views_off':
      return protectDisabled();
    case 'port_scans.not_running':
    case 'port_scans.no_address':
      return new HttpError(409, { code: 'conflict', reason: 'server_not_ready', message });
    case 'port_scans.too_many_addresses':
    case 'port_scans.limit_exceeded':
      return new HttpError(422, { code: 'validation_failed', reason: 'limit_exceeded', message, details });
    case 'port_scans.cooldown':
      return new HttpError(
        429,
        { code: 'rate_limited', reason: 'scan_cooldown', message, retryable: true },
        { 'retry-after': String(details.retryAfterSeconds) },
      );
    default:
      return null;
  }
}
