/** The calls of the customer API as tools need them that know none by its name: made of the OpenAPI document. */

export type Schema = Record<string, unknown>;

export interface Field {
  name: string;
  isRequired: boolean;
  description: string;
  /** With its references in place. */
  schema: Schema;
}

export interface Call {
  /** As the clients name their methods: `createServer`. */
  id: string;
  /** What it is about, and what it does there: `servers`, `create`. No two calls have the same pair. */
  group: string;
  name: string;
  method: string;
  /** `/api/v2/servers/{id}`. */
  path: string;
  summary: string;
  description: string;
  scope: 'read' | 'full';
  inPath: readonly Field[];
  inQuery: readonly Field[];
  /** Without the workspace; null where the call takes no body but that. */
  body: readonly Field[] | null;
  takesIdempotencyKey: boolean;
  takesIfMatch: boolean;
  takesPrefer: boolean;
  isIdempotent: boolean;
  /** It says of a deletion that it is done, and nothing else. */
  answersNothing: boolean;
  /** Something is lost for good. */
  destroys: boolean;
  /** The member with the items of a list that goes on over pages. */
  items: string | null;
  /** Name of the schema of an item. */
  itemType: string | null;
  /** Names of the schemas that it answers with. */
  answers: readonly string[];
}

/** A document whose shared parameters and responses are in place. */
export interface Document {
  tags: readonly { name: string; 'x-word': string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

interface Operation {
  operationId: string;
  tags: readonly string[];
  summary: string;
  description: string;
  'x-required-scope': 'read' | 'full';
  'x-idempotent'?: boolean;
  'x-destroys'?: boolean;
  parameters: readonly {
    name: string;
    in: string;
    required: boolean;
    description?: string;
    schema: Schema;
  }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>;
}

/** The calls of version 2, in the document's order. */
export function describeCalls(document: Document): Call[] {
  const calls = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/api/v2/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => describeCall(document, path, method, operation)),
    );
  return calls.map((call) => ({ ...call, name: shortName(call, calls) }));
}

/** Of the word of a group. */
export const singular = (word: string): string => word.replace(/(?<=ss)es$|s$/, '');

/** The words of the id without those of its group; `server` and the like stay where two calls would have one name. */
function shortName(call: Call, calls: readonly Call[]): string {
  const group = new Set(call.group.split('-').flatMap((word) => [word, singular(word), `${word}s`]));
  const without = (one: Call, filler: readonly string[]) => {
    const [verb, ...words] = one.id.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`).split('-');
    return [verb, ...words.filter((word) => !group.has(word) && !filler.includes(word))].join('-');
  };
  const short = (one: Call) => without(one, ['api', 'on', 'server']);
  const isShared = calls.some(
    (one) => one.group === call.group && one.id !== call.id && short(one) === short(call),
  );
  return isShared ? without(call, []) : short(call);
}

function describeCall(document: Document, path: string, method: string, operation: Operation): Call {
  const resolve = (schema: Schema) => inPlace(schema, document.components.schemas) as Schema;
  const fields = (place: string) =>
    operation.parameters
      .filter((one) => one.in === place && one.name !== 'tenant')
      .map(
        ({ name, required, description, schema }): Field => ({
          name,
          isRequired: required,
          description: description ?? String(schema.description ?? ''),
          schema: resolve(schema),
        }),
      );
  const takes = (name: string) =>
    operation.parameters.some((one) => one.in === 'header' && one.name === name);
  const body = operation.requestBody?.content['application/json']?.schema;
  const inBody = body === undefined ? [] : bodyFields(resolve(body));
  const answers = Object.entries(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, response]) => response.content?.['application/json']?.schema);
  return {
    id: operation.operationId.replace(/^v2(.)/, (_, first: string) => first.toLowerCase()),
    group: document.tags.find(({ name }) => name === operation.tags[0])!['x-word'],
    name: '',
    method: method.toUpperCase(),
    path,
    summary: operation.summary,
    description: operation.description,
    scope: operation['x-required-scope'],
    inPath: fields('path'),
    inQuery: fields('query'),
    body: inBody.length === 0 ? null : inBody,
    takesIdempotencyKey: takes('Idempotency-Key'),
    takesIfMatch: takes('If-Match') && method !== 'get',
    takesPrefer: takes('Prefer'),
    isIdempotent: operation['x-idempotent'] === true,
    answersNothing: answers.every((one) => one === undefined),
    destroys: operation['x-destroys'] === true,
    ...itemsOf(answers[0] === undefined ? {} : resolve(answers[0])),
    answers: answers.flatMap((one) => (typeof one?.$ref === 'string' ? [nameOfReference(one.$ref)] : [])),
  };
}

function bodyFields(schema: Schema): Field[] {
  const required = (schema.required ?? []) as string[];
  return Object.entries((schema.properties ?? {}) as Record<string, Schema>)
    .filter(([name]) => name !== 'tenant')
    .map(([name, member]) => ({
      name,
      isRequired: required.includes(name),
      description: String(member.description ?? ''),
      schema: member,
    }));
}

function itemsOf(schema: Schema): Pick<Call, 'items' | 'itemType'> {
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  if (properties.pagination === undefined) return { items: null, itemType: null };
  const [items, member] = Object.entries(properties).find(([, one]) => one.type === 'array')!;
  return { items, itemType: ((member.items as Schema | undefined)?.title as string | undefined) ?? null };
}

const nameOfReference = (reference: string) => reference.slice(reference.lastIndexOf('/') + 1);

/** The schema with its references in place; the document has none that goes in a circle. */
function inPlace(node: unknown, schemas: Readonly<Record<string, Schema>>): unknown {
  if (Array.isArray(node)) return node.map((one) => inPlace(one, schemas));
  if (node === null || typeof node !== 'object') return node;
  const { $ref: reference } = node as { $ref?: unknown };
  if (typeof reference === 'string') return inPlace(schemas[nameOfReference(reference)], schemas);
  return Object.fromEntries(Object.entries(node).map(([name, value]) => [name, inPlace(value, schemas)]));
}
