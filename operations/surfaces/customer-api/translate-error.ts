import { CodedError } from '#common/errors/index.ts';
import type { AccessRefusal } from '#operations/billing/index.ts';
import type { Rule } from '#operations/firewall/index.ts';
import type { DeployBudget, OrderRefusal, PaymentFailure } from '#operations/ordering/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { notFound } from './call.ts';
import { quotaExceeded } from './rate-headers.ts';
import { noFinding } from './servers/findings.routes.ts';
import { protectDisabled } from './servers/incidents.routes.ts';
import { type InputFault, invalidFields } from './validate-input.ts';

/** What an operation's refusal is on the wire. Anything unknown is passed on and becomes a 500. */
export function translateError(error: unknown): unknown {
  if (!(error instanceof CodedError)) return error;
  const { code, message, details } = error;
  const conflict = (reason: string, extra: object = {}, headers = {}) =>
    new HttpError(409, { code: 'conflict', reason, message, ...extra }, headers);
  switch (code) {
    case 'servers.not_found':
    case 'servers.snapshot_not_found':
      return notFound();
    case 'servers.invalid':
      return invalidFields(details.fields as InputFault[], details.reason as string | undefined, message);
    case 'orders.not_eligible':
      return refusalError(details.refusal as AccessRefusal, message);
    case 'orders.deploy_rate': {
      const { limit, used, resetSeconds } = details.deploys as DeployBudget;
      const headers = { 'retry-after': String(resetSeconds) };
      return new HttpError(
        429,
        {
          code: 'rate_limited',
          reason: 'deploy_rate',
          message,
          details: { limit, used },
          retryable: true,
          problem: quotaExceeded('deploy'),
        },
        headers,
      );
    }
    case 'orders.payment_failed': {
      const { reason, orderId, paymentAttemptId } = details.failure as PaymentFailure;
      const extra = { order_id: orderId, payment_attempt_id: paymentAttemptId };
      return new HttpError(402, { code: 'payment_required', reason, message, extra });
    }
    case 'orders.refused': {
      const { orderId, paymentAttemptId, cause } = details.refusal as OrderRefusal;
      return conflict('order_refused', {
        details: { cause: cause.split('.').at(-1) },
        extra: {
          order_id: orderId,
          ...(paymentAttemptId === null ? {} : { payment_attempt_id: paymentAttemptId }),
        },
      });
    }
    case 'servers.capacity':
      return capacityUnavailable(message);
    case 'idempotency.reused':
      return new HttpError(422, { code: 'validation_failed', reason: 'idempotency_key_reused', message });
    case 'idempotency.in_progress':
    case 'idempotency.overtaken':
      return conflict('idempotency_in_progress', { retryable: true }, { 'retry-after': '2' });
    case 'firewall.not_found':
    case 'firewall.rule_removed':
    case 'ssh_keys.not_found':
      return notFound();
    case 'ssh_keys.invalid':
      return invalidFields(details.fields as InputFault[], 'invalid_fields', message);
    case 'firewall.invalid':
      return invalidFields([firewallFault(error)], 'invalid_fields');
    case 'firewall.unsupported':
      return new HttpError(422, { code: 'validation_failed', reason: 'firewall_not_supported', message });
    case 'webhooks.not_found':
      return notFound();
    case 'webhooks.invalid':
      return invalidFields([{ path: String(details.field ?? 'url'), code: 'pattern', message }]);
    case 'webhooks.disabled':
      return conflict('webhook_disabled');
    case 'webhooks.test_rate':
      return new HttpError(
        429,
        { code: 'rate_limited', reason: 'test_rate', message, retryable: true },
        { 'retry-after': String(details.retrySeconds) },
      );
    case 'webhooks.owner_only':
    case 'api_keys.owner_only':
      return new HttpError(403, { code: 'forbidden', reason: 'owner_only', message });
    case 'api_keys.invalid':
      return invalidFields([{ path: String(details.field ?? 'name'), code: 'unknown_value', message }]);
    case 'api_keys.limit':
    case 'webhooks.limit':
    case 'ssh_keys.limit':
    case 'servers.snapshot_limit':
      return new HttpError(422, { code: 'validation_failed', reason: 'limit_exceeded', message, details });
    case 'ssh_keys.exists':
      return conflict('ssh_key_exists', { details: { ssh_key_id: details.id } });
    case 'servers.provisioning_failed':
      return conflict('provisioning_failed');
    case 'servers.not_ready':
      return conflict('server_not_ready', { retryable: details.isOnItsWay === true });
    case 'servers.not_cancellable':
      return conflict('action_not_cancellable');
    case 'servers.unsupported':
      return new HttpError(422, { code: 'validation_failed', reason: 'unsupported_action', message });
    case 'servers.busy':
      return conflict(
        'server_busy',
        { details: { action_id: details.actionId }, retryable: true },
        { 'retry-after': '2' },
      );
    default:
      return (
        translateAddressError(error) ??
        translatePortError(error) ??
        translateFindingError(error) ??
        translateNetworkError(error)
      );
  }
}

/** A rule's peers are its sources or its destinations here. */
function firewallFault({ message, details }: CodedError): InputFault {
  const { field, index, rule } = details as { field: string; index?: number; rule?: Rule };
  const peers = rule?.direction === 'outbound' ? 'destinations' : 'sources';
  const name = field === 'peers' ? peers : field;
  return { path: index === undefined ? name : `rules.${index}.${name}`, code: 'pattern', message };
}

export function refusalError(refusal: AccessRefusal, message: string): HttpError {
  return new HttpError(refusal.status, { code: refusal.code, reason: refusal.reason, message });
}

/** What a refusal about kept addresses and reverse names is on the wire; undefined for every other. */
function translateAddressError({ code, message, details }: CodedError): HttpError | undefined {
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

function capacityUnavailable(message: string): HttpError {
  return new HttpError(
    503,
    { code: 'unavailable', reason: 'capacity_unavailable', message, retryable: true },
    { 'retry-after': '60' },
  );
}

/** What a refused request of a port scan is on the wire; null for any other error. */
function translatePortError({ code, message, details }: CodedError): HttpError | null {
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

/** What a refused ignore is on the wire; null for any other error. */
function translateFindingError({ code, details, message }: CodedError): HttpError | null {
  switch (code) {
    case 'protect_findings.not_found':
      return notFound();
    case 'protect_findings.no_finding':
      return noFinding();
    case 'protect_findings.views_off':
      return protectDisabled();
    case 'protect_findings.invalid': {
      const fields = details.fields as Omit<InputFault, 'code'>[];
      return invalidFields(
        fields.map((field) => ({ code: 'invalid_value', ...field })),
        undefined,
        message,
      );
    }
    default:
      return null;
  }
}

/** What a refusal of `operations/networks` and `operations/bandwidth` is on the wire; anything else is passed on. */
function translateNetworkError(error: CodedError): unknown {
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
