/** Bodies about counted requests. */
import { type Static, Type } from 'typebox';
import { Id, Moment, Money, monthPattern, Nullable, OneOf } from './schema-kit.ts';

export const UsageQuery = Type.Object(
  {
    period: Type.Optional(
      Type.String({
        pattern: monthPattern,
        description: 'A UTC calendar month such as `2025-11`; the running one when left out.',
      }),
    ),
    group_by: Type.Optional(
      OneOf(
        ['day', 'key'],
        'What `groups` counts by, and what the lines of `Accept: text/csv` are (there `day` when left out).',
      ),
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
    overage_count: Type.Integer({ description: 'Requests above the free quota.' }),
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
    group_by: Nullable(OneOf(['day', 'key'])),
    groups: Nullable(
      Type.Array(
        Type.Object({
          group: Nullable(Type.String({ description: 'The day or the key’s id; null: all revoked keys.' })),
          name: Nullable(Type.String({ description: 'The key’s name.' })),
          count: Type.Integer(),
        }),
        { description: 'The month by what `group_by` names, the same shape for each; null without it.' },
      ),
    ),
  },
  { title: 'Usage' },
);
export type Usage = Static<typeof Usage>;
