import { CodedError } from '#common/errors/index.ts';
import type { AccessRefusal } from '#operations/billing/index.ts';
import type { Rule } from '#operations/firewall/index.ts';
import type { DeployBudget, OrderRefusal, PaymentFailure } from '#operations/ordering/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
import { capacityUnavailable, translateAddressError } from './addresses/translate-address-error.ts';
import { translateNetworkError } from './networks/translate-network-error.ts';
import { quotaExceeded } from './rate-headers.ts';
import { notFound } from './select-tenant.ts';
import { translateFindingError } from './servers/translate-finding-error.ts';
import { translatePortError } from './servers/translate-port-error.ts';
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
