/**
 * The HTTP server of both server programs: Fastify with our request ids, errors as coded JSON, and a clean stop.
 *
 * Surfaces register routes on it; what they throw becomes an answer here, so no surface formats errors by itself.
 * Successful calls are not logged (a line costs more than the call); failures and slow calls are.
 */

export { type ErrorFields, HttpError } from './errors.ts';
export { compressAnswer, preferredType } from './negotiate.ts';
export {
  type HostRules,
  healthPaths,
  isLoopback,
  newRequestId,
  originOf,
  type RequestOrigin,
  sourceBucket,
} from './origin.ts';
export * from './server.ts';
export { parseJsonBody, parseStrictJson } from './strict-json.ts';

/** What is wrong with a text that can't be kept as it is: PostgreSQL has no U+0000, and UTF-8 no half of a surrogate pair. */
export const unkeepableText = 'must not contain U+0000 or half a surrogate pair';

const isUnkeepable = (text: string) => text.includes('\0') || !text.isWellFormed();
const none: readonly string[] = [];

/** The paths of such texts in a JSON value: `a.0.b` is the field `b` of the first member of `a`, empty the value itself. */
export function findUnkeepableTexts(value: unknown): readonly string[] {
  if (typeof value === 'string') return isUnkeepable(value) ? [''] : none;
  if (typeof value !== 'object' || value === null) return none;
  let found = none;
  for (const name in value) {
    if (isUnkeepable(name)) return [''];
    const below = findUnkeepableTexts((value as Record<string, unknown>)[name]);
    if (below.length > 0)
      found = [...found, ...below.map((path) => (path === '' ? name : `${name}.${path}`))];
  }
  return found;
}
