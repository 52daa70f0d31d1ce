/** Checks bodies and queries against the contract; what does not fit becomes one 422 that names every fault. */
import { type Static, type TSchema, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { schemas } from '#contracts/customer-api/index.ts';
import { findUnkeepableTexts, HttpError, unkeepableText } from '#service-kit/http/index.ts';

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

// Each field that there should not be is an error of its own, and their names come in one behind all of those; by itself TypeBox
// stops at eight. An object of a body has at most 1,000 names.
Settings.Set({ maxErrors: 2_000 });

/** Returns the value; throws the 422 for one that doesn't fit. */
export function compileValidator<Schema extends TSchema>(schema: Schema): (value: unknown) => Static<Schema> {
  const compiled = Compile(schema);
  const known = Object.keys((schema as { properties?: object }).properties ?? {});
  return (value) => {
    if (!compiled.Check(value)) {
      const errors = compiled.Errors(value) as SchemaError[];
      throw invalidFields(errors.flatMap((error) => explain(error, errors, known)));
    }
    const faults: InputFault[] = [];
    for (const path of findUnkeepableTexts(value))
      faults.push({ path, code: 'characters', message: unkeepableText });
    findUnsafeNumbers(value, '', faults);
    if (faults.length > 0) throw invalidFields(faults);
    return value as Static<Schema>;
  };
}

/** JavaScript has no integer beyond 2^53. */
function findUnsafeNumbers(value: unknown, path: string, faults: InputFault[]): void {
  if (typeof value === 'number') {
    if (!Number.isSafeInteger(Math.trunc(value)))
      faults.push({ path, code: 'maximum', message: `must be <= ${Number.MAX_SAFE_INTEGER}` });
  } else if (typeof value === 'object' && value !== null) {
    for (const [name, member] of Object.entries(value))
      findUnsafeNumbers(member, path === '' ? name : `${path}.${name}`, faults);
  }
}

/** Refuses a query that an endpoint without query parameters does not know; `tenant` is not this check's business. */
export const checkNoQuery = compileValidator(
  Type.Object({ tenant: Type.Optional(Type.Unknown()) }, { additionalProperties: false }),
);

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
      const isSafe = isNumber && /^-?\d{1,16}$/.test(value) && Number.isSafeInteger(Number(value));
      return [name, isSafe ? Number(value) : value];
    }),
  );
}

function explain(error: SchemaError, all: readonly SchemaError[], known: readonly string[]): InputFault[] {
  const at = pathOf(error);
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
        at === '' ? `is not a field of this request${suggestion(name, known)}` : 'is not an allowed name',
    }));
  }
  // What a branch of a choice or a forbidden field says is said by the choice and by the object as well.
  if (error.keyword === 'boolean' || error.schemaPath.includes('/anyOf/')) return [];
  if (error.keyword === 'anyOf') return [explainChoice(error, all)];
  const allowed = error.params.allowedValues as unknown[] | undefined;
  return [{ path: at, code: error.keyword, message: wordsOf(error), ...(allowed ? { allowed } : {}) }];
}

/** A value of the right type is told what is wrong with it, any other which types there are. */
function explainChoice(choice: SchemaError, all: readonly SchemaError[]): InputFault {
  const branches = all.filter(
    (error) =>
      error.instancePath === choice.instancePath &&
      error.schemaPath.startsWith(`${choice.schemaPath}/anyOf/`),
  );
  const nearest = branches.find((error) => error.keyword !== 'type');
  if (nearest !== undefined)
    return { path: pathOf(choice), code: nearest.keyword, message: wordsOf(nearest) };
  const types = branches.map((error) => typeWords[error.params.type as string] ?? String(error.params.type));
  return { path: pathOf(choice), code: 'type', message: `must be ${types.join(' or ')}` };
}

const typeWords: Readonly<Record<string, string>> = {
  string: 'text',
  integer: 'a whole number',
  null: 'null',
};

/** Patterns in words; a pattern that is not among them shows itself. */
const patternWords: Readonly<Record<string, string>> = {
  [schemas.namePattern]:
    'must not begin or end with a space, nor contain control characters or ones that turn the direction of writing',
  [schemas.plainTextPattern]:
    'must not contain control characters or characters that turn the direction of writing',
  [schemas.hostnamePattern]: 'must be a host name in lower case, such as web-1.example.net',
  [schemas.momentPattern]:
    'must be RFC 3339 with Z or an offset, such as 2026-11-21T10:00:00Z (in a URL, + is written %2B)',
  [schemas.monthPattern]: 'must be a month such as 2025-11',
  [schemas.monthOrDayPattern]: 'must be a month such as 2025-11, or a day such as 2025-11-30',
};

function wordsOf({ keyword, params, message }: SchemaError): string {
  return (keyword === 'pattern' && patternWords[String(params.pattern)]) || message;
}

function pathOf(error: SchemaError): string {
  return error.instancePath.replace(/^\//, '').replaceAll('/', '.');
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
