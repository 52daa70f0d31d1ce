import { Type } from 'typebox';
import { targetsLimitDefault, targetsLimitMax } from '#contracts/admin-api/schemas.ts';

/** `?after_id&limit` of every page: ids after the cursor, in rising order. */
export const PageQuery = Type.Object(
  {
    after_id: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 }),
    limit: Type.Integer({ minimum: 1, maximum: targetsLimitMax, default: targetsLimitDefault }),
  },
  { additionalProperties: false },
);
