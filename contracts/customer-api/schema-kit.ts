/**
 * What the bodies of the customer API are made of.
 *
 * `snake_case`, UTC RFC 3339, integer ids, money as decimal text with its currency. Every documented field is always
 * there, `null` when unknown. What these schemas don't name can't leave the server.
 */
import { type Static, type TArray, type TOptional, type TProperties, type TSchema, Type } from 'typebox';
import { unseenCharacters } from '#common/text/index.ts';
import { Nullable, Timestamp } from '../scalars.ts';
import { errorKinds } from './errors.ts';

/** A body, by its name in the document. */
export const Titled = <P extends TProperties>(title: string, properties: P) =>
  Type.Object(properties, { title });
/** Members that may be left out. */
export const Optional = <P extends TProperties>(members: P) =>
  Object.fromEntries(
    Object.entries(members).map(([name, schema]) => [name, Type.Optional(schema)]),
  ) as unknown as { [Name in keyof P]: TOptional<P[Name]> };
/** What a call's body may hold; it may select the workspace. */
export const RequestBody = <P extends TProperties>(title: string, properties: P) =>
  Type.Object(
    { ...properties, tenant: Type.Optional(TenantSelector) },
    { title, additionalProperties: false },
  );
/** A page of a list. */
export const PageOf = <Name extends string, T extends TSchema>(title: string, name: Name, items: T) => {
  const list = { [name]: Type.Array(items) } as Record<Name, TArray<T>>;
  return Type.Object({ ...list, pagination: Pagination }, { title });
};
/** One of a closed list of words. */
export const OneOf = <const V extends readonly string[]>(values: V, description?: string) =>
  Type.Unsafe<V[number]>({ type: 'string', enum: [...values], ...(description ? { description } : {}) });
/** UTC, RFC 3339. */
/** An integer id. */
export const Id = Type.Integer({ minimum: 1 });
/** UTC, RFC 3339. */
export const Moment = Timestamp;
/** An amount as decimal text; its currency stands beside it. */
export const Money = Type.String({ pattern: '^-?\\d+\\.\\d{2,4}$', description: 'Decimal text.' });

/** Where a list goes on. */
export const Pagination = Type.Object(
  {
    limit: Type.Integer(),
    total: Type.Integer(),
    has_more: Type.Boolean(),
    next_cursor: Nullable(Type.String()),
  },
  { title: 'Pagination' },
);

/** A workspace by id or slug. */
export const TenantSelector = Type.Union([Id, Type.String({ minLength: 1, maxLength: 64 })], {
  description: 'A workspace of the key, by id or slug (v2; v1 ignores it).',
  'x-resource': 'tenant',
});

/** A body that may only select the workspace. */
export const SelectionRequest = RequestBody('SelectionRequest', {});

/** What people name by slug and programs by id. */
export const SlugOrId = (what: string) =>
  Type.Union([Type.String({ minLength: 1, maxLength: 64 }), Id], {
    description: `${what}, by slug or id.`,
    'x-resource': 'catalog',
  });

/** A line of text: no control characters, nothing that turns the direction of writing, no space around it. */
export const namePattern = `^(?!\\s)[^${unseenCharacters}]*(?<!\\s)$`;
/** Where a page of a list begins, and how long it is. */
export const pageQuery = (limitDefault: number) =>
  Type.Object(
    {
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: limitDefault })),
      cursor: Type.Optional(Type.String({ maxLength: 200 })),
    },
    { additionalProperties: false },
  );
/** Of lists that are short: most fit on their first page. */
export const ShortListQuery = pageQuery(200);
export type ShortListQuery = Static<typeof ShortListQuery>;

/** On what a projection rests; it and what is projected are null within the first hour. */
export const ProjectionHours = Nullable(
  Type.Integer({
    minimum: 0,
    description:
      'Hours that the projection rests on: since the start of the month, the opening of the account or its first server. Null within the first hour.',
  }),
);
/** What people call a thing of theirs. */
export const Name = Type.String({ minLength: 1, maxLength: 64, pattern: namePattern });
export const hostnamePattern = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$';
/** RFC 3339 of this century, with its offset: without one the time zone would be a guess. */
export const momentPattern =
  '^20\\d{2}-\\d{2}-\\d{2}[Tt]([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?([Zz]|[+-]([01]\\d|2[0-3]):[0-5]\\d)$';
export const monthPattern = '^20\\d{2}-(0[1-9]|1[0-2])$';
export const monthOrDayPattern = '^20\\d{2}-(0[1-9]|1[0-2])(-\\d{2})?$';

/** Text that shows as it is: no control characters, nothing that turns the direction of writing. */
export const plainTextPattern = `^[^${unseenCharacters}]*$`;
export const LabelValue = Type.String({ maxLength: 255, pattern: plainTextPattern });
/** Customers' own words on a resource. */
export const Labels = Type.Record(Type.String({ pattern: '^[A-Za-z0-9._/-]{1,63}$' }), LabelValue, {
  maxProperties: 32,
  additionalProperties: false,
});

const errorMembers = {
  code: OneOf([...new Set(errorKinds.map((kind) => kind.code))], 'Error code for programs.'),
  reason: Type.Optional(Type.String()),
  request_id: Type.String(),
  retryable: Type.Boolean(),
  order_id: Type.Optional(
    Type.Integer({ minimum: 1, description: 'For 402 and `order_refused`: the failed order.' }),
  ),
  payment_attempt_id: Type.Optional(
    Type.Integer({ minimum: 1, description: 'For 402 and `order_refused`: the charge, if there was one.' }),
  ),
  details: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  fields: Type.Optional(
    Type.Array(
      Type.Object({
        path: Type.String(),
        code: Type.String(),
        message: Type.String(),
        allowed: Type.Optional(Type.Array(Type.Unknown())),
      }),
    ),
  ),
};

/** The one shape of every error. */
export const ErrorAnswer = Type.Object(
  { error: Type.Object({ ...errorMembers, message: Type.String(), doc_url: Type.String() }) },
  { title: 'Error' },
);

/** The same as RFC 9457 says it, for callers that ask for `application/problem+json`. */
export const ProblemAnswer = Type.Object(
  {
    type: Type.String({ description: 'Documentation of this error.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    instance: Type.String({ description: 'The request id.' }),
    ...errorMembers,
    'violated-policies': Type.Optional(
      Type.Array(Type.String(), { description: 'For 429: the exceeded policies of `RateLimit`.' }),
    ),
  },
  { title: 'Problem' },
);
