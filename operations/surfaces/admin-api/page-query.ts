import { type Static, Type } from 'typebox';
import { targetsLimitDefault, targetsLimitMax } from '#contracts/admin-api/schemas.ts';

/** `?after_id&limit` of every page: ids after the cursor, in rising order. */
export const PageQuery = Type.Object(
  {
    after_id: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: targetsLimitMax })),
  },
  { additionalProperties: false },
);

/** The query with its defaults: from the beginning, 200 at a time. */
export function readPageQuery(query: Static<typeof PageQuery>): { afterId: number; limit: number } {
  return { afterId: query.after_id ?? 0, limit: query.limit ?? targetsLimitDefault };
}
