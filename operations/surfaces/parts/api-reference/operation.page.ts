/** One call of the reference: what it takes and gives, as one types it, and a form that tries it. */
import { commonErrors } from '#contracts/customer-api/index.ts';
import {
  badge,
  type Content,
  codeBlock,
  codeColumn,
  field,
  type Html,
  html,
  link,
  prose,
  table,
} from '#service-kit/pages/index.ts';
import {
  type Json,
  nameOfReference,
  type Operation,
  type Parameter,
  type ReferenceDocument,
  type Response,
  resolveSchema,
} from './document.ts';
import { exampleAnswer, exampleParameter, exampleRequest } from './example.ts';

interface OperationOptions {
  places: Places;
  /** Where the API stands: `https://my.example.com`, or `$URL`. */
  origin: string;
  /** Where the errors are listed. */
  errorsHref: string;
}

export function renderOperation(operation: Operation, options: OperationOptions): Html {
  const { places, origin } = options;
  const { schemas } = places.document;
  const answer = usualAnswer(operation);
  const version = operation.isInV1 ? 'v1 and v2' : 'v2 only';
  return html`<section class="operation" id="${operation.id}"><header class="operation-header"><h2><a class="anchor" href="#${operation.id}">${operation.summary}</a></h2><p class="operation-path"><span class="method">${operation.method}</span> <code>${operation.path}</code> ${badge('neutral', `${operation.scope} key`)} ${badge('neutral', version)}</p></header><div class="operation-columns"><div class="operation-text"><p>${prose(operation.description)}</p>${parameterTable(operation.parameters, places)}${bodyTable(operation, places)}${answerTable(operation.responses, options)}</div><div class="operation-code">${codeBlock({ label: 'curl', code: curlOf(operation, origin, schemas) })}${codeBlock({ label: 'TypeScript', code: typescriptOf(operation, schemas) })}${
    answer !== undefined &&
    codeBlock({
      label: `Answer ${answer.status}`,
      code: JSON.stringify(exampleAnswer(answer.schema!, schemas), null, 2),
      canCopy: false,
    })
  }${tryForm(operation, schemas)}</div></div></section>`;
}

function parameterTable(parameters: readonly Parameter[], places: Places): Content {
  if (parameters.length === 0) return '';
  const rows = parameters.map((parameter): FieldRow => {
    const place = parameter.in === 'path' ? 'In the path.' : parameter.in === 'header' ? 'A header.' : '';
    const text = parameter.description ?? (parameter.schema.description as string | undefined) ?? '';
    return {
      name: parameter.name,
      type: typeOf(parameter.schema, places),
      text: html`${prose(text)} ${place}`,
    };
  });
  return fieldTable('Parameters', rows);
}

function bodyTable(operation: Operation, places: Places): Content {
  if (operation.body === null) return '';
  const schema = resolveSchema(operation.body.schema, places.document.schemas);
  const caption = operation.body.isRequired ? 'Body' : 'Body, which may be left out';
  return fieldTable(caption, fieldRows(schema, places, 'request'));
}

const everywhere: ReadonlySet<string> = new Set(commonErrors);

/** What the call answers; errors that any call may give stand with all the others. */
function answerTable(responses: readonly Response[], options: OperationOptions): Html {
  const rows = responses.flatMap((response) => {
    if (Number(response.status) < 400) return [{ response, reasons: [] as string[] }];
    const reasons = response.reasons.filter((reason) => !everywhere.has(reason));
    return reasons.length === 0 ? [] : [{ response, reasons }];
  });
  return table<(typeof rows)[number]>({
    caption: 'Answers',
    card: { line: ['body', 'text'] },
    refreshSeconds: 0,
    captionVisible: true,
    rows,
    columns: [
      codeColumn('status', 'Status', (row) => row.response.status),
      {
        key: 'body',
        header: 'Body',
        kind: 'prose',
        cell: ({ response, reasons }) =>
          reasons.length > 0
            ? reasons.map((reason, index) => [
                index > 0 ? ', ' : '',
                link(`${options.errorsHref}#error-${reason}`, html`<code>${reason}</code>`),
              ])
            : response.schema === null
              ? 'none'
              : typeOf(response.schema, options.places),
      },
      {
        key: 'text',
        header: 'When',
        kind: 'prose',
        cell: ({ response, reasons }) => (reasons.length > 0 ? '' : prose(response.description)),
      },
    ],
    empty: { title: 'No answers', text: 'This call has none.' },
  });
}

type Schemas = Readonly<Record<string, Json>>;

/** The answer that the call usually gets: what it made, where it makes something, and never that of a dry run. */
function usualAnswer(operation: Operation): Operation['responses'][number] | undefined {
  const good = operation.responses.filter((one) => one.status.startsWith('2') && one.schema !== null);
  return good.find((one) => one.status === '201') ?? good[0];
}

/** The path with its variables filled in, and the query that the call can't do without. */
function examplePath(operation: Operation, schemas: Schemas): string {
  let path = operation.path;
  for (const parameter of operation.parameters.filter((one) => one.in === 'path')) {
    const value = encodeURIComponent(String(pathValue(operation, parameter.name, parameter.schema, schemas)));
    path = path.replace(`{${parameter.name}}`, value);
  }
  const query = new URLSearchParams();
  for (const [name, value] of neededQuery(operation, schemas)) query.append(name, String(value));
  return query.size === 0 ? path : `${path}?${query}`;
}

/** The parameters of the query that the call can't do without. */
function neededQuery(operation: Operation, schemas: Schemas): [string, unknown][] {
  return operation.parameters
    .filter((one) => one.in === 'query' && one.required)
    .map(({ name, schema }) => [name, exampleParameter(name, schema, schemas)]);
}

/** `{id}` is the id of what the word before it names. */
function pathValue(operation: Operation, name: string, schema: Json, schemas: Schemas): unknown {
  const before = operation.path.split(`/{${name}}`, 1)[0]!.split('/').at(-1)!;
  const named = name === 'id' ? `${before.replace(/(?<=ss)es$|s$/, '')}_id` : name;
  return exampleParameter(named, schema, schemas);
}

/** A `curl` command; `origin` is where the API stands. */
export function curlOf(operation: Operation, origin: string, schemas: Schemas): string {
  const lines = [
    `curl ${operation.method === 'GET' ? '' : `-X ${operation.method} `}"${origin}${examplePath(operation, schemas)}"`,
  ];
  lines.push('-H "Authorization: Bearer $KEY"');
  if (operation.body?.isRequired) {
    const body = JSON.stringify(exampleRequest(operation.body.schema, schemas), null, 2);
    lines.push('-H "Content-Type: application/json"', `-d '${body.replaceAll("'", "'\\''")}'`);
  }
  return lines.join(' \\\n  ');
}

/** The same with the client of `clients/typescript`. */
export function typescriptOf(operation: Operation, schemas: Schemas): string {
  const values = operation.parameters
    .filter((one) => one.in === 'path')
    .map((one) => JSON.stringify(pathValue(operation, one.name, one.schema, schemas)));
  if (operation.body?.isRequired) values.push(literalOf(exampleRequest(operation.body.schema, schemas)));
  const query = neededQuery(operation, schemas);
  if (query.length > 0) values.push(literalOf(Object.fromEntries(query)));
  const call = `api.${operation.id}(${values.join(', ')})`;
  const list = listNameOf(operation, schemas);
  if (list === null)
    return usualAnswer(operation) ? `const ${resultNameOf(operation)} = await ${call};` : `await ${call};`;
  return `for await (const ${list.replace(/ies$/, 'y').replace(/s$/, '')} of ${call}) {\n  // …\n}`;
}

/** The member that holds the items of a list that goes on over pages; null for any other answer. */
function listNameOf(operation: Operation, schemas: Schemas): string | null {
  const schema = operation.responses.find((one) => one.status === '200')?.schema;
  const name = typeof schema?.$ref === 'string' ? schema.$ref.split('/').at(-1)! : null;
  const properties = (name === null ? schema : schemas[name])?.properties as Record<string, Json> | undefined;
  if (operation.method !== 'GET' || properties?.pagination === undefined) return null;
  return Object.keys(properties).find((key) => properties[key]!.type === 'array') ?? null;
}

function resultNameOf(operation: Operation): string {
  const schema = usualAnswer(operation)?.schema;
  const name =
    typeof schema?.$ref === 'string'
      ? schema.$ref
          .split('/')
          .at(-1)!
          .replace(/^Created/, '')
      : 'answer';
  return name[0]!.toLowerCase() + name.slice(1);
}

/** JSON as TypeScript writes it: names without quotes where they need none, texts in single ones. */
function literalOf(value: unknown): string {
  return JSON.stringify(value, null, 2)
    .replace(/^(\s*)"([A-Za-z_]\w*)":/gm, '$1$2:')
    .replace(
      /"((?:[^"\\]|\\.)*)"/g,
      (_, text: string) => `'${text.replaceAll("'", "\\'").replaceAll('\\"', '"')}'`,
    );
}

/** Where the schemas of the document are explained. */
export type Places = ReturnType<typeof createPlaces>;

/** Schemas in words: what a field may be, and tables of an object's fields. */
export function createPlaces(document: ReferenceDocument, base: string) {
  const homes = new Map(
    document.resources.flatMap((resource) => resource.objects.map((name) => [name, resource.name] as const)),
  );
  return {
    document,
    /** Address of the object's table. */
    hrefOf(name: string): string {
      const home = homes.get(name);
      return home === undefined ? `${base}#errors` : `${base}${home}/#object-${name}`;
    },
  };
}

/** A schema in a few words, with links to the objects that it names. */
function typeOf(schema: Json, places: Places): Content {
  if (typeof schema.$ref === 'string') {
    const name = nameOfReference(schema.$ref);
    return link(places.hrefOf(name), name);
  }
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (choices) return choices.map((one, index) => html`${index > 0 ? ' or ' : ''}${typeOf(one, places)}`);
  if (schema.enum) {
    const words = schema.enum as unknown[];
    return words.map((word, index) => html`${index > 0 ? ' · ' : ''}<code>${String(word)}</code>`);
  }
  if (schema.type === 'array') return html`list of ${typeOf((schema.items ?? {}) as Json, places)}`;
  if (schema.type === 'object') return schema.properties ? 'object' : 'object of strings';
  if (schema.type === 'string') return schema.format === 'date-time' ? 'time' : 'string';
  return typeof schema.type === 'string' ? schema.type : 'anything';
}

/** What a value must be beyond its type, such as `, at most 15 characters`. */
function boundsOf(schema: Json): string {
  const parts: string[] = [];
  const range = (from: unknown, to: unknown, unit: string) => {
    if (from !== undefined && to !== undefined) parts.push(`${from} to ${to}${unit}`);
    else if (to !== undefined) parts.push(`at most ${to}${unit}`);
    else if (from !== undefined && unit === '' && from !== 1 && from !== 0) parts.push(`at least ${from}`);
  };
  range(schema.minLength, schema.maxLength, ' characters');
  range(schema.minimum, schema.maximum, '');
  range(undefined, schema.maxItems, ' entries');
  if (schema.default !== undefined) parts.push(`default ${JSON.stringify(schema.default)}`);
  return parts.map((part) => `, ${part}`).join('');
}

interface FieldRow {
  name: string;
  type: Content;
  text: Content;
}

/** The fields of an object, those of its inner objects below them with dots. */
export function fieldRows(schema: Json, places: Places, side: 'answer' | 'request', path = ''): FieldRow[] {
  const required = new Set((schema.required ?? []) as string[]);
  return Object.entries((schema.properties ?? {}) as Record<string, Json>).flatMap(([name, property]) => {
    const inner = innerObject(property);
    const needed = side === 'request' && required.has(name) && html`<strong>Required.</strong> `;
    const absent = side === 'answer' && !required.has(name) && 'Where it applies. ';
    const row = {
      name: `${path}${name}`,
      type: html`${typeOf(property, places)}${boundsOf(property)}`,
      text: html`${needed}${absent}${prose(textOf(property))}`,
    };
    const suffix = property.type === 'array' ? '[].' : '.';
    const below = inner === null ? [] : fieldRows(inner, places, side, `${path}${name}${suffix}`);
    return [row, ...below];
  });
}

/** What the document says of a field: of itself, or of its value where that may be null. */
function textOf(schema: Json): string {
  const choices = ((schema.anyOf ?? schema.oneOf ?? []) as Json[]).filter((one) => one.type !== 'null');
  return String(schema.description ?? (choices.length === 1 ? choices[0]!.description : undefined) ?? '');
}

/** The object that a field holds, itself or as the items of a list or beside null; null for anything else. */
function innerObject(schema: Json): Json | null {
  if (schema.type === 'object' && schema.properties) return schema;
  if (schema.type === 'array') return innerObject((schema.items ?? {}) as Json);
  const choices = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  return choices?.map(innerObject).find((one) => one !== null) ?? null;
}

export function fieldTable(caption: string, rows: readonly FieldRow[]): Html {
  return table<FieldRow>({
    caption,
    card: { line: ['type', 'text'] },
    refreshSeconds: 0,
    captionVisible: true,
    rows,
    columns: [
      codeColumn('name', 'Name', (row) => row.name),
      { key: 'type', header: 'Type', kind: 'prose', cell: (row) => row.type },
      { key: 'text', header: 'Meaning', kind: 'prose', cell: (row) => row.text },
    ],
    empty: { title: 'No fields', text: 'There are none.' },
  });
}

/** The field for the key; once on a page, above its calls. */
export function keyField(): Html {
  return html`<div class="try-key needs-script"><div class="field"><label for="try-key">Your key, for trying calls from this page</label><p class="hint" id="try-key-hint">It stays in this field: it goes to this API alone, is stored nowhere, and is gone when you leave the page. Calls are real and are counted.</p><input id="try-key" type="password" autocomplete="off" spellcheck="false" class="code" placeholder="svc_…" aria-describedby="try-key-hint"></div></div>`;
}

function tryForm(operation: Operation, schemas: Readonly<Record<string, Json>>): Html {
  const body = operation.body;
  // A selected workspace is a query value here; one field for it is enough. The conditions of a read are for programs.
  const hidden = ['X-Tenant-Id', 'If-None-Match', ...(operation.method === 'GET' ? ['If-Match'] : [])];
  const parameters = operation.parameters.filter((one) => one.in !== 'header' || !hidden.includes(one.name));
  const id = (name: string) => `try-${operation.id}-${name.toLowerCase()}`;
  const kind = operation.method === 'GET' ? 'button' : 'button danger';
  const label = operation.method === 'GET' ? 'Send' : 'Send: this changes things';
  return html`<details class="try needs-script"><summary>Try it</summary><form class="form stacked" data-try data-method="${operation.method}" data-path="${operation.path}">${parameters.map((parameter) => parameterField(parameter, id(parameter.name)))}${bodyField(body, schemas, id('body'))}<div class="form-buttons"><button type="submit" class="${kind}">${label}</button></div><div class="try-answer" data-answer aria-live="polite"></div></form></details>`;
}

function parameterField(parameter: Parameter, id: string): Html {
  const isNeeded = parameter.in === 'path' || parameter.required;
  return field({
    id,
    name: `${parameter.in}:${parameter.name}`,
    label: parameter.name,
    required: isNeeded,
    autocomplete: 'off',
    isCode: true,
  });
}

function bodyField(body: Operation['body'], schemas: Readonly<Record<string, Json>>, id: string): Content {
  if (body === null) return '';
  const example = body.isRequired ? JSON.stringify(exampleRequest(body.schema, schemas), null, 2) : '';
  return field({
    kind: 'textarea',
    id,
    name: 'body',
    label: 'Body',
    required: body.isRequired,
    value: example,
    rows: Math.min(14, Math.max(3, example.split('\n').length)),
    isCode: true,
  });
}
