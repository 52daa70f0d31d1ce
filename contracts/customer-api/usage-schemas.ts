/** Bodies about counted requests. */
import { type Static, Type } from 'typebox';
import { Id, Moment, Money, Nullable, OneOf } from './schema-kit.ts';

export const UsageQuery = Type.Object(
  {
    period: Type.Optional(
      Type.String({
        pattern: '^20\\d{2}-(0[1-9]|1[0-2])$',
        description: 'A UTC calendar month such as `2025-11`; the running one when left out.',
      }),
    ),
  },
  { additionalProperties: false },
);
export type UsageQuery = Static<typeof UsageQuery>;

export const Usage = Type.Object(
  {
    tenant_id: Id,
    period: Type.String(),
    state: OneOf(['open', 'closed'], 'Open while the month runs.'),
    count: Type.Integer({ description: 'Counted requests of all keys of the account, this call included.' }),
    included_count: Type.Integer({ description: 'Free requests of the month.' }),
    overage_count: Type.Integer({ description: 'Requests beyond the free ones.' }),
    overage_charged_count: Type.Integer({ description: 'Those of them that have been charged.' }),
    overage_amount: Money,
    projected_count: Type.Integer({ description: 'The month’s requests if it goes on as it began.' }),
    projected_overage_amount: Money,
    currency: Type.String(),
    price: Type.Object({ per_requests: Type.Integer(), amount: Money }),
    resets_at: Type.String({ format: 'date-time', description: 'When the next month begins.' }),
    as_of: Moment,
    keys: Type.Array(
      Type.Object({
        key_id: Nullable(Type.String({ description: 'Null: all revoked keys together.' })),
        name: Type.String(),
        count: Type.Integer(),
      }),
      { description: 'Who called, most requests first.' },
    ),
    days: Type.Array(Type.Object({ date: Type.String({ format: 'date' }), count: Type.Integer() }), {
      description: 'Every UTC day of the month up to now; a day without requests has 0.',
    }),
  },
  { title: 'Usage' },
);
export type Usage = Static<typeof Usage>;
