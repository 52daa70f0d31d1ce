/** Bodies about counted requests. */
import { type Static, Type } from 'typebox';
import { Nullable, Strict } from '../scalars.ts';
import type { EndpointDeclaration } from './endpoint.ts';
import { Id, Moment, Money, monthPattern, OneOf, Optional, ProjectionHours, Titled } from './schema-kit.ts';

export const UsageQuery = Strict({
  ...Optional({
    period: Type.String({
      pattern: monthPattern,
      description: 'A UTC calendar month such as `2025-11`; the present one by default.',
    }),
    group_by: OneOf(
      ['day', 'key'],
      'Grouping of `groups` and of the lines of `Accept: text/csv` (by default `day` for CSV).',
    ),
  }),
});
export type UsageQuery = Static<typeof UsageQuery>;

export const Usage = Titled('Usage', {
  tenant_id: Id,
  period: Type.String(),
  state: OneOf(['open', 'closed'], 'Open until the end of the month.'),
  count: Type.Integer({ description: 'Counted requests of all keys of the account, including this call.' }),
  included_count: Type.Integer({ description: 'Free requests of the month.' }),
  overage_count: Type.Integer({ description: 'Requests above the free quota.' }),
  overage_charged_count: Type.Integer({ description: 'Charged requests above the free quota.' }),
  overage_amount: Money,
  projected_count: Nullable(
    Type.Integer({ description: 'Projected requests of the month at the present rate.' }),
  ),
  projected_overage_amount: Nullable(Money),
  projection_hours: ProjectionHours,
  currency: Type.String(),
  price: Type.Object({ per_requests: Type.Integer(), amount: Money }),
  resets_at: Type.String({ format: 'date-time', description: 'Start of the next month.' }),
  as_of: Moment,
  keys: Type.Array(
    Type.Object({
      key_id: Nullable(Type.String({ description: 'Null: all revoked keys together.' })),
      name: Type.String(),
      count: Type.Integer(),
    }),
    { description: 'Keys, most requests first.' },
  ),
  days: Type.Array(Type.Object({ date: Type.String({ format: 'date' }), count: Type.Integer() }), {
    description: 'Every UTC day of the month so far; 0 for a day without requests.',
  }),
  group_by: Nullable(OneOf(['day', 'key'])),
  groups: Nullable(
    Type.Array(
      Type.Object({
        group: Nullable(Type.String({ description: 'The day or the key’s id; null: all revoked keys.' })),
        name: Nullable(Type.String({ description: 'The key’s name.' })),
        count: Type.Integer(),
      }),
      { description: 'The month by `group_by`; null without it.' },
    ),
  ),
});
export type Usage = Static<typeof Usage>;

/** Counted requests. */
export const usageEndpoints = [
  {
    id: 'readUsage',
    call: 'GET /usage',
    summary: 'Read the requests of a month',
    description:
      'Counted requests of the workspace’s account in a UTC calendar month: by key, by day, and the cost of overage. Overage never blocks a call.',
    query: UsageQuery,
    responses: {
      200: {
        description: 'The month; with `Accept: text/csv` a header line and one line per day or key.',
        schema: Usage,
        alsoAs: { 'text/csv': Type.String() },
      },
    },
  },
] as const satisfies readonly EndpointDeclaration[];
