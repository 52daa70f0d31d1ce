/** Bodies about bandwidth, and the account payload. */
import { type Static, Type } from 'typebox';
import { Id, Moment, Money, monthOrDayPattern, Nullable, OneOf } from './schema-kit.ts';
import { Usage } from './usage-schemas.ts';

const Bytes = Type.Integer({ minimum: 0 });
/** A share of the pool in TB of 10^12 bytes; exact bytes stand in `bandwidth`. */
const Terabytes = (description: string) => Type.Number({ minimum: 0, description });

export const BandwidthRow = Type.Object(
  {
    server_id: Id,
    server_name: Type.String(),
    period: Type.String({ description: 'A UTC month such as `2025-11`, or a day such as `2025-11-03`.' }),
    period_start: Moment,
    period_end: Moment,
    inbound_bytes: Bytes,
    outbound_bytes: Bytes,
    total_bytes: Bytes,
    pool_bytes: Type.Integer({ minimum: 0, description: 'What of it counts against the account’s pool.' }),
    pool_share: Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Its part of what all servers of the account used of the pool in the period.',
    }),
    sampled: Type.Boolean({ description: 'False: nothing was measured, and the zeros mean unknown.' }),
    last_sampled_at: Nullable(Moment),
    server_deleted: Type.Boolean(),
  },
  { title: 'BandwidthRow' },
);
export type BandwidthRow = Static<typeof BandwidthRow>;

export const ServerBandwidth = Type.Object(
  {
    server_id: Id,
    granularity: OneOf(['month', 'day']),
    source: OneOf(['hypervisor', 'telemetry'], 'Where the figures come from.'),
    current: BandwidthRow,
    history: Type.Array(BandwidthRow, { description: 'Newest first.' }),
    attribution_only: Type.Literal(true, {
      description: 'Bandwidth is attributed to servers; the pool is the account’s, and no server has a cap.',
    }),
  },
  { title: 'ServerBandwidth' },
);
export type ServerBandwidth = Static<typeof ServerBandwidth>;

const PeriodName = Type.String({
  pattern: monthOrDayPattern,
  description: 'A UTC month or day.',
});

export const BandwidthQuery = Type.Object(
  {
    from: Type.Optional(PeriodName),
    to: Type.Optional(PeriodName),
    granularity: Type.Optional(OneOf(['month', 'day'], 'Default `month`.')),
  },
  { additionalProperties: false },
);
export type BandwidthQuery = Static<typeof BandwidthQuery>;

const Limit = Type.Object({
  max: Nullable(Type.Integer({ description: 'Null: no limit.' })),
  used: Type.Integer(),
});

export const Account = Type.Object(
  {
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
    extra_server_allowance_tb: Terabytes('Earned by servers beyond the first, up to now.'),
    instance_earned_tb: Terabytes('The same as `extra_server_allowance_tb`.'),
    extra_per_additional_server_gb: Type.Number({
      minimum: 0,
      description: 'What a server beyond the first earns in a full month, in GB.',
    }),
    instance_potential_tb: Terabytes(
      'What the servers beyond the first would earn in the rest of the month; not spendable.',
    ),
    instance_remaining_tb: Terabytes('What is left of `instance_earned_tb`; the free part is used up first.'),
    potential_allowance_tb: Terabytes(
      'What `allowance_tb` will be at the end of the month if the servers run on; not spendable.',
    ),
    base_allowance_tb: Terabytes('Of every account, each month.'),
    tenure_bonus_tb: Terabytes('For the full years since the account was opened.'),
    free_allowance_tb: Terabytes('`base_allowance_tb` and `tenure_bonus_tb`.'),
    allowance_tb: Terabytes('What may be used up to now: the free part and what was earned.'),
    reset_at: Type.String({ format: 'date-time', description: 'When the next month’s allowance begins.' }),
    bandwidth: Type.Object({
      period: Type.String(),
      source: OneOf(['hypervisor', 'telemetry']),
      pool_counts: OneOf(['outbound', 'total'], 'Which bytes count against the pool.'),
      tb_bytes: Type.Integer({ description: 'Bytes of one TB here.' }),
      used_bytes: Bytes,
      remaining_bytes: Bytes,
      projected_bytes: Type.Integer({ minimum: 0, description: 'If the month goes on as it began.' }),
      servers: Type.Array(BandwidthRow, {
        description: 'The running month only; destroyed servers that existed in it are among them.',
      }),
    }),
    as_of: Moment,
  },
  { title: 'Account' },
);
export type Account = Static<typeof Account>;
