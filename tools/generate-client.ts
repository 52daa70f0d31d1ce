/**
 * Writes the generated half of the TypeScript client, out of the OpenAPI document of the customer API.
 *
 * usage: sh tools/with-node tools/generate-client.ts [--check]      --check: only says whether the files are up to date
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';

type Json = Record<string, unknown>;

interface Operation {
  operationId: string;
  summary: string;
  description: string;
  parameters: { name: string; in: string; required: boolean; schema: Json; description?: string }[];
  requestBody?: { required: boolean; content: Record<string, { schema: Json }> };
  /** A POST that does the same however often it is sent. */
  'x-idempotent'?: boolean;
  responses: Record<string, { content?: Record<string, { schema: Json }>; 'x-reasons'?: string[] }>;
}

interface Document {
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
  components: { schemas: Record<string, Json> };
}

const file = fileURLToPath(new URL('../clients/typescript/generated/api.ts', import.meta.url));
/** Headers that the caller's options stand for; none of them is an argument of its own. */
const optionHeaders = ['x-tenant-id', 'idempotency-key', 'prefer', 'if-none-match', 'if-match'];

/** The bodies of the API, and a method for each call. */
export function generateClient(document: Document = readOpenApi(buildOpenApi())): string {
  const operations = Object.entries(document.paths)
    .filter(([path]) => path.startsWith('/api/v2/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        path,
        method: method.toUpperCase(),
        operation,
      })),
    );
  const { schemas } = document.components;
  const reasons = new Set(
    operations.flatMap(({ operation }) =>
      Object.values(operation.responses).flatMap((one) => one['x-reasons'] ?? []),
    ),
  );
  const methods = operations.map((one) => writeMethod(one.path, one.method, one.operation, document));
  return [
    header,
    ...Object.keys(schemas).map((name) => writeType(name, schemas)),
    writeErrors(document, [...reasons].sort()),
    writeEvents(document),
    ...operations.map(({ operation }) => writeQuery(operation)).filter((text) => text !== ''),
    `/** A method for each call of the API. */\nexport class Api extends Caller {\n${methods.join('\n')}}\n`,
  ].join('\n');
}

const header = `/**
 * The calls of the customer API, their bodies, errors and events.
 *
 * Made by tools/generate-client.ts out of the OpenAPI document: change the contract and generate it again.
 */
import { type CallOptions, Caller, List } from '../caller.ts';
`;

function writeType(name: string, schemas: Document['components']['schemas']): string {
  const schema = schemas[name]!;
  const text = schema.description as string | undefined;
  const base = baseOf(name, schemas);
  const inherited = base === undefined ? {} : membersOf(schemas[base]!);
  const own = Object.entries(membersOf(schema)).filter(([member]) => !(member in inherited));
  const type = typeOf(
    base === undefined ? schema : { ...schema, properties: Object.fromEntries(own) },
    0,
    name.endsWith('Request'),
  );
  const bases = base === undefined ? '' : `${typeName(base)} & `;
  return `${text ? `/** ${text} */\n` : ''}export type ${typeName(name)} = ${bases}${type};\n`;
}

const membersOf = (schema: Json) => (schema.properties ?? {}) as Record<string, Json>;
/** Fewer members than these are the same by chance. */
const baseMembersMin = 4;

/** The schema that all members of another one are from, but for those that it adds. */
function baseOf(name: string, schemas: Document['components']['schemas']): string | undefined {
  const membersTextOf = (schema: Json) =>
    Object.entries(membersOf(schema)).map(([member, property]) =>
      JSON.stringify([member, property, ((schema.required ?? []) as string[]).includes(member)]),
    );
  const all = new Set(membersTextOf(schemas[name]!));
  return Object.keys(schemas).find((other) => {
    const texts = membersTextOf(schemas[other]!);
    return texts.length >= baseMembersMin && texts.length < all.size && texts.every((one) => all.has(one));
  });
}

/** `Error` is already a JavaScript name. */
function typeName(name: string): string {
  return name === 'Error' ? 'ErrorBody' : name;
}

function typeOf(schema: Json, depth: number, isRequest: boolean): string {
  if (typeof schema.$ref === 'string') return typeName(nameOf(schema.$ref));
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (choices) return [...new Set(choices.map((one) => typeOf(one, depth, isRequest)))].join(' | ');
  if (schema.enum) return (schema.enum as unknown[]).map(literal).join(' | ');
  switch (schema.type) {
    case 'array': {
      const items = typeOf((schema.items ?? {}) as Json, depth, isRequest);
      return /[|&]/.test(items) && !items.startsWith('{') ? `(${items})[]` : `${items}[]`;
    }
    case 'object':
      return objectType(schema, depth, isRequest);
    case 'integer':
    case 'number':
      return 'number';
    case 'string':
    case 'boolean':
    case 'null':
      return schema.type;
    default:
      return 'unknown';
  }
}

function objectType(schema: Json, depth: number, isRequest: boolean): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  if (properties.length === 0) {
    const values = Object.values((schema.patternProperties ?? {}) as Record<string, Json>)[0];
    return values ? `Record<string, ${typeOf(values, depth, isRequest)}>` : 'Record<string, unknown>';
  }
  const required = new Set((schema.required ?? []) as string[]);
  const indent = '  '.repeat(depth + 1);
  const lines = properties
    // The workspace is an option of every call.
    .filter(([name]) => !(isRequest && depth === 0 && name === 'tenant'))
    .map(([name, property]) => {
      const description = descriptionOf(property);
      const text = description ? `${indent}/** ${description} */\n` : '';
      const isOptional = !required.has(name);
      const type = typeOf(property, depth + 1, isRequest);
      return `${text}${indent}${memberName(name)}${isOptional ? '?' : ''}: ${type}${isOptional ? ' | undefined' : ''};`;
    });
  return lines.length === 0 ? 'Record<string, never>' : `{\n${lines.join('\n')}\n${'  '.repeat(depth)}}`;
}

/** Of the member itself, or of what it is when it is not null. */
function descriptionOf(property: Json): unknown {
  const choices = (property.anyOf ?? []) as Json[];
  const filled = choices.filter((one) => one.type !== 'null');
  return property.description ?? (filled.length === 1 ? filled[0]!.description : undefined);
}

function writeErrors(document: Document, reasons: string[]): string {
  const error = (document.components.schemas.Error!.properties as { error: Json }).error;
  const code = (error.properties as { code: { enum: string[] } }).code;
  return `/** What kind of error it is; the list is closed. */
export const errorCodes = [${code.enum.map(literal).join(', ')}] as const;
export type ErrorCode = (typeof errorCodes)[number];

/** Which case it was, as far as it is known today; new ones may appear. */
export type ErrorReason =
${reasons.map((reason) => `  | ${literal(reason)}`).join('\n')};
`;
}

function writeEvents(document: Document): string {
  const kinds = Object.values(document.webhooks).map(({ post }) => ({
    summary: post.summary,
    members: membersOf(post.requestBody!.content['application/json']!.schema),
  }));
  const lines = kinds.map(
    ({ summary, members: { type, data } }) =>
      `/** ${summary} */\n  | EventOf<${typeOf(type!, 1, false)}, ${typeOf(data!, 1, false)}>`,
  );
  return `type EventOf<Type extends string, Data> = {
  type: Type;
  /** ${descriptionOf(kinds[0]!.members.timestamp!)} */
  timestamp: string;
  data: Data;
};

/** What a webhook delivers, once its signature has been verified. */
export type WebhookEvent =\n  ${lines.join('\n  ')};\n`;
}

function writeQuery(operation: Operation): string {
  const parameters = operation.parameters.filter((one) => one.in === 'query' && one.name !== 'tenant');
  if (parameters.length === 0) return '';
  const lines = parameters.map((one) => {
    const text = one.description ? `  /** ${one.description} */\n` : '';
    const type = typeOf(one.schema, 1, true);
    return one.required
      ? `${text}  ${memberName(one.name)}: ${type};`
      : `${text}  ${memberName(one.name)}?: ${type} | undefined;`;
  });
  return `export interface ${queryName(operation)} {\n${lines.join('\n')}\n}\n`;
}

function writeMethod(path: string, method: string, operation: Operation, document: Document): string {
  const id = idOf(operation);
  const inPath = operation.parameters.filter((one) => one.in === 'path');
  const query = operation.parameters.filter((one) => one.in === 'query' && one.name !== 'tenant');
  const body = bodyType(operation, document);
  const strangers = operation.parameters.filter(
    (one) => one.in === 'header' && !optionHeaders.includes(one.name.toLowerCase()),
  );
  if (strangers.length > 0)
    throw new Error(`${id}: the client does not know the header ${strangers[0]!.name}`);
  const takes = (name: string) => operation.parameters.some((one) => one.name.toLowerCase() === name);
  const list = listOf(operation, document);
  const options = query.length > 0 ? `${queryName(operation)} & CallOptions` : 'CallOptions';
  const parameters = [
    ...inPath.map((one) => `${camel(one.name)}: ${typeOf(one.schema, 1, true)}`),
    ...(body === null ? [] : [`body: ${body}`]),
    query.some((one) => one.required) ? `options: ${options}` : `options: ${options} = {}`,
  ];
  const call = [
    `method: ${literal(method)}`,
    `path: \`${path.replace(/\{(\w+)\}/g, (_, name: string) => `\${encodeURIComponent(${camel(name)})}`)}\``,
    ...(query.length > 0 ? [`query: [${query.map((one) => literal(one.name)).join(', ')}]`] : []),
    ...(body === null ? [] : ['body']),
    ...(takes('idempotency-key') ? ['takesIdempotencyKey: true'] : []),
    ...(operation['x-idempotent'] ? ['isIdempotent: true'] : []),
    ...(answerType(operation) === 'undefined' ? ['answersNothing: true'] : []),
    'options',
  ];
  const answer = answerType(operation);
  const shown = `  /** ${operation.summary}. ${operation.description} */`;
  const request = `{ ${call.join(', ')} }`;
  const dry = dryRun(operation, document);
  if (dry !== null) {
    const signature = (kind: string, result: string) =>
      `  ${id}(body: ${body} & { ${kind} }, options?: ${options}): Promise<${result}>;\n`;
    const overloads =
      signature('dry_run?: false | undefined', dry.real) + signature('dry_run: true', dry.forecast);
    return `${shown}\n${overloads}  ${id}(${parameters.join(', ')}): Promise<${answer}> {\n    return this.call<${answer}>(${request});\n  }\n`;
  }
  return list === null
    ? `${shown}\n  ${id}(${parameters.join(', ')}): Promise<${answer}> {\n    return this.call<${answer}>(${request});\n  }\n`
    : `${shown}\n  ${id}(${parameters.join(', ')}): List<${answer}, ${list.item}> {\n    return new List(this, ${request}, ${literal(list.name)});\n  }\n`;
}

/** The type of the body; null where a call takes none, or nothing but the workspace. */
function bodyType(operation: Operation, document: Document): string | null {
  const schema = operation.requestBody?.content['application/json']?.schema;
  if (schema === undefined) return null;
  const name = typeof schema.$ref === 'string' ? nameOf(schema.$ref) : null;
  const whole = name === null ? schema : document.components.schemas[name]!;
  const members = Object.keys((whole.properties ?? {}) as object).filter((member) => member !== 'tenant');
  return members.length === 0 ? null : name === null ? typeOf(schema, 1, true) : typeName(name);
}

function answerType(operation: Operation): string {
  const types = Object.entries(operation.responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([, response]) => {
      const schema = response.content?.['application/json']?.schema;
      return schema === undefined ? 'undefined' : typeOf(schema, 1, false);
    });
  return [...new Set(types)].join(' | ');
}

/** Answers of a call that can also only say what it would do: 200 is the forecast, 201 the real thing. */
function dryRun(operation: Operation, document: Document): { real: string; forecast: string } | null {
  const schema = operation.requestBody?.content['application/json']?.schema;
  const whole = typeof schema?.$ref === 'string' ? document.components.schemas[nameOf(schema.$ref)]! : schema;
  const type = (status: string) => {
    const found = operation.responses[status]?.content?.['application/json']?.schema;
    return found === undefined ? null : typeOf(found, 1, false);
  };
  const [real, forecast] = [type('201'), type('200')];
  const takesIt = 'dry_run' in ((whole?.properties ?? {}) as object);
  return takesIt && real !== null && forecast !== null ? { real, forecast } : null;
}

/** The member with the items of a list that goes on over pages. */
function listOf(operation: Operation, document: Document): { name: string; item: string } | null {
  const schema = operation.responses[200]?.content?.['application/json']?.schema;
  if (typeof schema?.$ref !== 'string') return null;
  const whole = document.components.schemas[nameOf(schema.$ref)]!;
  const properties = (whole.properties ?? {}) as Record<string, Json>;
  if (properties.pagination === undefined) return null;
  const [name, items] = Object.entries(properties).find(([, property]) => property.type === 'array')!;
  return { name, item: typeOf((items.items ?? {}) as Json, 1, false) };
}

const nameOf = (reference: string) => reference.slice('#/components/schemas/'.length);
const idOf = (operation: Operation) =>
  operation.operationId.replace(/^v2(.)/, (_, first: string) => first.toLowerCase());
const queryName = (operation: Operation) => `${operation.operationId.replace(/^v2/, '')}Query`;
const camel = (name: string) => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
const memberName = (name: string) => (/^[A-Za-z_]\w*$/.test(name) ? name : literal(name));
const literal = (value: unknown) =>
  typeof value === 'string' ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'` : String(value);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const text = generateClient();
  if (!process.argv.includes('--check')) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    console.error('clients/typescript is out of date: run sh tools/with-node tools/generate-client.ts');
    process.exitCode = 1;
  }
}
