/** What the bodies of every API here are made of: only values that programs and databases keep as they are. */
import { type TProperties, type TSchema, Type } from 'typebox';
import Format from 'typebox/format';

const firstMs = Date.parse('0001-01-01T00:00:00Z');
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/** RFC 3339 in UTC's years 1 to 9999. A leap second has no place in the time of POSIX, so it is no timestamp. */
export function isTimestamp(text: string): boolean {
  const ms = Format.IsDateTime(text) && !text.includes('[') ? Date.parse(text) : Number.NaN;
  return ms >= firstMs && ms <= lastMs;
}

Format.Set('date-time', isTimestamp);

/** Always there, `null` when unknown. */
export const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
/** An object of these members and no others. */
export const Strict = <P extends TProperties>(properties: P) =>
  Type.Object(properties, { additionalProperties: false });
/** An integer id. */
export const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
export const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** Of one. */
export const Share = Type.Number({ minimum: 0, maximum: 1 });
export const Timestamp = Type.String({ format: 'date-time' });
