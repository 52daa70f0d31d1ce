/** Checks bodies and queries against the contract; what does not fit becomes one 422 that names every fault. */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { HttpError } from '#service-kit/http/index.ts';

export interface InputFault {
  path: string;
  code: string;
  message: string;
  allowed?: unknown[];
}

interface SchemaError {
  keyword: string;
  schemaPath: string;
  instancePath: string;
  params: Record<string, unknown>;
  message: string;
}

/** Throws the 422 for a value that doesn't fit. */
export type Validator = (value: unknown) => void;

export function compileValidator(schema: TSchema): Validator {
  const compiled = Compile(schema);
  const known = Object.keys((schema as { properties?: object }).properties ?? {});
  return (value) => {
    if (compiled.Check(value)) return;
    const faults = (compiled.Errors(value) as SchemaError[]).flatMap((error) => explain(error, known));
    throw invalidFields(faults);
  };
}

export function invalidFields(faults: InputFault[], reason = 'invalid_fields', message?: string): HttpError {
  return new HttpError(422, {
    code: 'validation_failed',
    reason,
    message: message ?? 'Some fields are not as they must be; see `fields`.',
    fields: faults,
  });
}

/** Query texts as the types that the schema names; what can't be converted stays text and fails the check. */
export function convertQuery(
  schema: TSchema,
  query: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const properties = (schema as { properties?: Record<string, { type?: string }> }).properties ?? {};
  return Object.fromEntries(
    Object.entries(query).map(([name, value]) => {
      const isNumber = properties[name]?.type === 'integer' && typeof value === 'string';
      return [name, isNumber && /^-?\d{1,15}$/.test(value) ? Number(value) : value];
    }),
  );
}

function explain(error: SchemaError, known: readonly string[]): InputFault[] {
  const at = error.instancePath.replace(/^\//, '').replaceAll('/', '.');
  const below = (name: string) => (at === '' ? name : `${at}.${name}`);
  if (error.keyword === 'required') {
    const names = error.params.requiredProperties as string[];
    return names.map((name) => ({ path: below(name), code: 'required', message: 'is required' }));
  }
  if (error.keyword === 'additionalProperties') {
    const names = error.params.additionalProperties as string[];
    return names.map((name) => ({
      path: below(name),
      code: 'unknown_field',
      message:
        at === ''
          ? `is not a field of this request${suggestion(name, known)}`
          : 'is not a name that may stand here',
    }));
  }
  // What a branch of a choice or a forbidden field says is said by the choice and by the object as well.
  if (error.keyword === 'boolean' || error.schemaPath.includes('/anyOf/')) return [];
  if (error.keyword === 'anyOf')
    return [{ path: at, code: 'type', message: 'must be text or a whole number above 0' }];
  const allowed = error.params.allowedValues as unknown[] | undefined;
  return [{ path: at, code: error.keyword, message: error.message, ...(allowed ? { allowed } : {}) }];
}

function suggestion(name: string, known: readonly string[]): string {
  const near = known
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate) }))
    .filter(({ distance, candidate }) => distance <= Math.min(3, Math.ceil(candidate.length / 3)))
    .sort((a, b) => a.distance - b.distance)[0];
  return near ? `; did you mean \`${near.candidate}\`?` : '';
}

/** Insertions, deletions and replacements between two short words; long ones are far apart without counting. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 3) return 99;
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}
