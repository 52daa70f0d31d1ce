/**
 * Every error of the customer API: a small closed set of codes, one for each kind of answer, and open, specific reasons.
 *
 * Clients branch on `code` and show `message`; `reason` says exactly which case it was. The portal uses the same reasons.
 */
export interface ErrorKind {
  status: number;
  code: string;
  /** null: this code comes without a reason. */
  reason: string | null;
  sentence: string;
}

/** Of one status; a reason of null: this code comes without one. */
const kinds = (status: number, code: string, ...sentences: [reason: string | null, sentence: string][]) =>
  sentences.map(([reason, sentence]): ErrorKind => ({ status, code, reason, sentence }));

export const errorKinds: readonly ErrorKind[] = [
  ...kinds(
    400,
    'bad_request',
    ['invalid_json', 'The body is not valid JSON, or a name appears twice in one object.'],
    ['tenant_conflict', 'Query, body and header name different workspaces.'],
    ['invalid_cursor', 'The cursor is not from this list or not from this order.'],
    ['invalid_header', 'A request header is invalid.'],
    [null, 'The request is not valid HTTP, or its path is not a valid URL.'],
  ),
  ...kinds(401, 'unauthorized', [null, 'The key is missing or invalid. Every cause gives the same answer.']),
  ...kinds(
    402,
    'payment_required',
    ['hourly_not_eligible', 'The account is not eligible for hourly billing yet.'],
    ['credit_required', 'Another server requires credit above zero or a saved card.'],
    [
      'charge_declined',
      'The saved card was declined; nothing was ordered: `order_id`, `payment_attempt_id`.',
    ],
    [
      'charge_unconfirmed',
      'Payment result unknown. Nothing was ordered; a late payment is refunded: `order_id`, `payment_attempt_id`.',
    ],
  ),
  ...kinds(
    403,
    'forbidden',
    ['no_billing_profile', 'The account has no billing profile.'],
    ['account_suspended', 'The account is suspended.'],
    ['account_closed', 'The account is closed.'],
    ['read_only_key', 'A read key may use GET and HEAD only.'],
    ['owner_only', 'Only a key of an owner of the organization may do this.'],
  ),
  ...kinds(
    404,
    'not_found',
    [null, 'No resource with this id, or it belongs to another account.'],
    ['protect_disabled', 'The protection views of the server are off.'],
  ),
  ...kinds(405, 'method_not_allowed', [null, 'The path exists, but not with this method; see `Allow`.']),
  ...kinds(
    409,
    'conflict',
    ['provisioning_failed', 'Provisioning failed; support must resolve it first.'],
    ['server_busy', 'Another action of the server is running: `details.action_id`.'],
    ['action_not_cancellable', 'The action has begun or finished.'],
    ['server_not_ready', 'The state of the server does not allow this action.'],
    ['idempotency_in_progress', 'The first call with this `Idempotency-Key` is still running.'],
    ['network_in_use', 'The network still has members: `details.servers`.'],
    ['already_attached', 'The server is already on the network with another address.'],
    ['ip_in_use', 'Another server of the network has this address.'],
    ['address_kept', 'The workspace keeps this address already: `details.address_id`.'],
    ['address_attached', 'A server has the address: `details.server_id`. Detach it first.'],
    ['address_available', 'No server has the address.'],
    ['primary_address', 'The primary address of a server stays with it until the server is destroyed.'],
    ['ssh_key_exists', 'The workspace has this key or name already: `details.ssh_key_id`.'],
    ['webhook_disabled', 'The endpoint is disabled.'],
    ['last_interface', 'The last interface of a server without a public address can not be removed.'],
    [
      'order_refused',
      'The order was paid but can not be completed; the charge is refunded: `order_id`, `payment_attempt_id`, `details.cause`.',
    ],
  ),
  ...kinds(412, 'precondition_failed', [
    'etag_mismatch',
    'The resource was changed: its `ETag` is not in `If-Match`. Nothing was done.',
  ]),
  ...kinds(413, 'payload_too_large', [null, 'The body is larger than 256 KiB.']),
  ...kinds(415, 'unsupported_media_type', [null, 'Send the body as `Content-Type: application/json`.']),
  ...kinds(
    422,
    'validation_failed',
    ['invalid_fields', 'Fields are missing, unknown or invalid: `fields`.'],
    ['billing_cycle_not_supported', 'Servers are billed hourly through the API.'],
    [
      'unsupported_action',
      'Unknown action, or the hypervisors of the location can’t do it. Allowed: `fields[0].allowed`.',
    ],
    ['idempotency_key_reused', 'This `Idempotency-Key` was used for another request.'],
    ['limit_exceeded', 'The account has reached the limit: `details`.'],
    ['cidr_not_allowed', 'The CIDR block is not allowed: `details`.'],
    ['cidr_overlap', 'The CIDR block overlaps with another network of the account.'],
    ['firewall_not_supported', 'The hypervisor of the server filters no traffic.'],
    [
      'reverse_dns_not_confirmed',
      'The name has no A or AAAA record with the address. `force` sets it all the same.',
    ],
    ['reverse_dns_not_supported', 'Names of this address can’t be set here.'],
    ['immutable_field', 'The field can not be changed: `fields`.'],
  ),
  ...kinds(
    429,
    'rate_limited',
    ['key_rate', 'The key exceeded its requests per minute.'],
    ['deploy_rate', 'The account exceeded its deployments per hour.'],
    ['scan_cooldown', 'A port scan of the server was requested less than 10 minutes ago; see `Retry-After`.'],
    ['test_rate', 'The endpoint had 5 tests within 10 minutes; see `Retry-After`.'],
    ['auth_rate', 'Too many failed authentications from this address.'],
  ),
  ...kinds(500, 'internal_error', [null, 'Internal error. It was recorded.']),
  ...kinds(
    503,
    'unavailable',
    ['capacity_unavailable', 'The location has no free capacity.'],
    [null, 'The service is unavailable. Retry later.'],
  ),
];

/** The kinds of these reasons; a code names its kind without a reason. */
export function kindsOf(names: readonly string[]): ErrorKind[] {
  return names.map((name) => {
    const found = errorKinds.find((candidate) => (candidate.reason ?? candidate.code) === name);
    if (!found) throw new Error(`the contract has no error ${name}`);
    return found;
  });
}
