/** Bodies about bandwidth, and the account payload. */
import { type Static, Type } from 'typebox';
import { Nullable, Strict } from '../scalars.ts';
import { both, type EndpointDeclaration, ok } from './endpoint.ts';
import {
  Id,
  Moment,
  Money,
  monthOrDayPattern,
  OneOf,
  ProjectionHours,
  TenantSelector,
  Titled,
} from './schema-kit.ts';
import { Usage } from './usage.ts';

const Bytes = Type.Integer({ minimum: 0 });
/** A share of the pool in TB of 10^12 bytes; exact bytes stand in `bandwidth`. */
const Terabytes = (description: string) => Type.Number({ minimum: 0, description });

export const BandwidthRow = Titled('BandwidthRow', {
  server_id: Id,
  server_name: Type.String(),
  period: Type.String({ description: 'A UTC month such as `2025-11`, or a day such as `2025-11-03`.' }),
  period_start: Moment,
  period_end: Moment,
  inbound_bytes: Bytes,
  outbound_bytes: Bytes,
  total_bytes: Bytes,
  provider_scan_inbound_bytes: Type.Integer({
    minimum: 0,
    description: 'Part of `inbound_bytes` that port scans by the provider caused.',
  }),
  provider_scan_outbound_bytes: Type.Integer({
    minimum: 0,
    description: 'Part of `outbound_bytes` that port scans by the provider caused.',
  }),
  attack_inbound_bytes: Type.Integer({
    minimum: 0,
    description:
      'Part of `inbound_bytes` that attacks on the server were, each of them one of its incidents.',
  }),
  attack_outbound_bytes: Type.Integer({
    minimum: 0,
    description:
      'Part of `outbound_bytes` that attacks from the server were, each of them one of its incidents.',
  }),
  pool_bytes: Type.Integer({
    minimum: 0,
    description:
      'Bytes that count against the account’s pool; those of attacks and of port scans by the provider do not.',
  }),
  pool_share: Type.Number({
    minimum: 0,
    maximum: 1,
    description: 'Part of the account’s pool usage in the period.',
  }),
  sampled: Type.Boolean({ description: 'False: no measurement yet; the zeros mean unknown.' }),
  last_sampled_at: Nullable(Moment),
  server_deleted: Type.Boolean(),
});
export type BandwidthRow = Static<typeof BandwidthRow>;

export const ServerBandwidth = Titled('ServerBandwidth', {
  server_id: Id,
  granularity: OneOf(['month', 'day']),
  source: OneOf(['hypervisor', 'telemetry'], 'Source of the figures.'),
  current: BandwidthRow,
  history: Type.Array(BandwidthRow, { description: 'Newest first.' }),
  attribution_only: Type.Literal(true, {
    description: 'Traffic per server. The pool belongs to the account; there is no limit per server.',
  }),
});
export type ServerBandwidth = Static<typeof ServerBandwidth>;

const PeriodName = Type.String({ pattern: monthOrDayPattern, description: 'A UTC month or day.' });

export const BandwidthQuery = Strict({
  from: Type.Optional(PeriodName),
  to: Type.Optional(PeriodName),
  granularity: Type.Optional(OneOf(['month', 'day'], 'Default `month`.')),
});
export type BandwidthQuery = Static<typeof BandwidthQuery>;

const Limit = Type.Object({
  max: Nullable(Type.Integer({ description: 'Null: no limit.' })),
  used: Type.Integer(),
});

export const Account = Titled('Account', {
  id: Id,
  name: Type.String(),
  status: OneOf(['active', 'suspended', 'closed']),
  currency: Type.String(),
  credit_balance: Money,
  hourly_billing: Type.Object({
    eligible: Type.Boolean({ description: 'Another hourly-billed server could be deployed now.' }),
    reason: Nullable(Type.String()),
  }),
  limits: Type.Object({ servers: Limit, networks: Limit, keys: Limit, deploys_per_hour: Limit }),
  api_usage: Usage,
  extra_server_allowance_tb: Terabytes('Allowance earned so far by servers after the first.'),
  instance_earned_tb: Terabytes('The same as `extra_server_allowance_tb`.'),
  extra_per_additional_server_gb: Type.Number({
    minimum: 0,
    description: 'Allowance of each server after the first for a full month, in GB.',
  }),
  instance_potential_tb: Terabytes(
    'Allowance still accruing this month for servers after the first; not usable yet.',
  ),
  instance_remaining_tb: Terabytes('Rest of `instance_earned_tb`; the free part is used first.'),
  potential_allowance_tb: Terabytes(
    'Expected `allowance_tb` at the end of the month if all servers keep running; not usable yet.',
  ),
  base_allowance_tb: Terabytes('Base allowance of every account per month.'),
  tenure_bonus_tb: Terabytes('Loyalty bonus for each full year of the account.'),
  free_allowance_tb: Terabytes('`base_allowance_tb` and `tenure_bonus_tb`.'),
  allowance_tb: Terabytes('Allowance so far: the free part and the earned part.'),
  reset_at: Type.String({ format: 'date-time', description: 'Start of the next month’s allowance.' }),
  bandwidth: Type.Object({
    period: Type.String(),
    source: OneOf(['hypervisor', 'telemetry']),
    pool_counts: OneOf(['outbound', 'total'], 'Direction of the bytes that count against the pool.'),
    tb_bytes: Type.Integer({ description: 'Number of bytes in one TB.' }),
    used_bytes: Bytes,
    remaining_bytes: Bytes,
    projected_bytes: Nullable(Type.Integer({ minimum: 0, description: 'Projection at the present rate.' })),
    projection_hours: ProjectionHours,
    overage: Type.Object(
      {
        per_tb: Nullable(Money),
        bytes: Type.Integer({
          minimum: 0,
          description: 'Bytes beyond the pool so far. The pool grows until the month ends.',
        }),
        amount: Money,
        projected_amount: Nullable(Money),
        charged_at: Nullable(Moment),
        when_used_up: OneOf(
          ['charge', 'limit'],
          '`charge`: traffic beyond the pool is charged. `limit`: once the pool is used up, the servers are limited in speed until the month ends, and traffic beyond it is not charged.',
        ),
        limit_mbit: Nullable(
          Type.Integer({
            minimum: 1,
            description: 'Speed of each limited server in Mbit/s. Null: `limit` can’t be chosen.',
          }),
        ),
        limited_since: Nullable(Moment),
      },
      {
        description:
          'Cost of this month’s traffic beyond the pool. It is charged once, at `charged_at`, by what was delivered. `per_tb` and `charged_at` are null while nothing is charged, `limited_since` while the servers are not limited.',
      },
    ),
    servers: Type.Array(BandwidthRow, {
      description: 'Present month only; includes servers destroyed in it.',
    }),
  }),
  as_of: Moment,
});
export type Account = Static<typeof Account>;

export const UpdateAccountRequest = Type.Object(
  {
    when_used_up: OneOf(['charge', 'limit'], 'See `bandwidth.overage` of the account.'),
    tenant: Type.Optional(TenantSelector),
  },
  { additionalProperties: false, title: 'UpdateAccountRequest' },
);
export type UpdateAccountRequest = Static<typeof UpdateAccountRequest>;

/** The account, and what its servers used of its bandwidth. */
export const bandwidthEndpoints = [
  {
    id: 'readAccount',
    call: 'GET /account',
    versions: both,
    summary: 'Read the account',
    description:
      'Credit, limits, counted requests and the bandwidth pool of the present month. All servers of the account share the allowances.',
    // It counts this very call, so no tag of it would ever match.
    responses: { 200: { description: 'The account.', schema: Account } },
  },
  {
    id: 'updateAccount',
    call: 'PATCH /account',
    summary: 'Choose what happens when the bandwidth pool is used up',
    description:
      'Holds from now on, also in later months. With `limit` the servers are limited within about a minute of using up the pool, new ones as well, until the month ends. With `charge` a limit ends, and what is used beyond the pool from then on is charged.',
    body: UpdateAccountRequest,
    responses: { 200: { description: 'The account.', schema: Account } },
  },
  {
    id: 'readServerBandwidth',
    call: 'GET /servers/{id}/bandwidth',
    versions: both,
    summary: 'Read the bandwidth of a server',
    description:
      'Traffic of the server by UTC month or day, newest first; the last twelve months unless `from` and `to` are set. The present month is always included: with zeros and `sampled: false` before the first measurement.',
    params: { id: 'server' },
    query: BandwidthQuery,
    responses: ok(ServerBandwidth, 'The history.'),
  },
] as const satisfies readonly EndpointDeclaration[];
