/**
 * The reference of the customer API as page content, drawn from its OpenAPI document alone: what is described is what
 * is validated and served. It is content without a frame, so that any shell can stand around it.
 */
import { buildOpenApi, commonErrors, errorKinds } from '#contracts/customer-api/index.ts';
import { badge, type Content, codeBlock, type Html, html, section, table } from '#service-kit/pages/index.ts';

type Json = Record<string, unknown>;

interface Operation {
  method: string;
  path: string;
  operationId: string;
  summary: string;
  description: string;
  scope: string;
  parameters: Parameter[];
  body: Json | null;
  responses: [string, Json][];
}

interface Parameter {
  name: string;
  in: string;
  required: boolean;
  description?: string;
  schema: Json;
}

/** Everything that the page says about the API, with anchors that links and `doc_url` lead to. */
interface ApiReference {
  content: Html;
  /** For a table of contents. */
  anchors: { id: string; label: string }[];
}

export function renderApiReference(): ApiReference {
  const document = buildOpenApi();
  const operations = listOperations(document).filter((operation) => operation.path.startsWith('/api/v2/'));
  const schemas = Object.entries((document.components as { schemas: Json }).schemas) as [string, Json][];
  const content = html`${introduction()}${operations.map(renderOperation)}${errors()}${section(
    { title: 'Objects', id: 'objects' },
    schemas.map(([name, schema]) => renderSchema(name, schema)),
  )}`;
  return {
    content,
    anchors: [
      { id: 'start', label: 'Start' },
      ...operations.map(({ operationId, summary }) => ({ id: operationId, label: summary })),
      { id: 'errors', label: 'Errors' },
      { id: 'objects', label: 'Objects' },
    ],
  };
}

const firstCall = `curl -X POST "$URL/api/v2/servers" \\
  -H "Authorization: Bearer $KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"plan": "kvm-1", "image": "debian-13"}'`;

function introduction(): Html {
  return section(
    { title: 'Start', id: 'start' },
    html`<p>${prose('Send your key in a header: `Authorization: Bearer svc_…`. Nothing else is accepted, no cookie and no query parameter.')}</p>${codeBlock({ code: firstCall, label: 'Deploy a server' })}<p>${prose('The answer carries `root_password`, only this once. Poll the server under its `Location` until its `status` is `running`.')}</p><p>${prose('`/api/v1` has the same calls and always acts on the first workspace that the key reaches. `/api/v2` takes `tenant` from the query, the JSON body or `X-Tenant-Id`.')}</p><p>${prose('Counted answers carry `X-Api-Quota-Limit`, `X-Api-Quota-Remaining` and `X-Api-Quota-Used`; `RateLimit` says what is left of the minute. The document itself: ')}<a href="/docs/api/openapi.json">openapi.json</a></p>`,
  );
}

function renderOperation(operation: Operation): Html {
  const parameters = operation.parameters.length > 0 ? parameterTable(operation.parameters) : '';
  return section(
    {
      title: operation.summary,
      id: operation.operationId,
      description: html`<code>${operation.method.toUpperCase()} ${operation.path}</code> ${badge('neutral', `${operation.scope} key`)}`,
    },
    html`<p>${prose(operation.description)}</p>${parameters}${operation.body && html`<p>Body: ${typeOf(operation.body)}</p>`}${responseTable(operation)}`,
  );
}

function parameterTable(parameters: Parameter[]): Html {
  return table<Parameter>({
    caption: 'Parameters',
    captionVisible: true,
    rows: parameters,
    columns: [
      { key: 'name', header: 'Name', kind: 'code', cell: (row) => row.name },
      { key: 'in', header: 'In', cell: (row) => row.in },
      { key: 'type', header: 'Type', kind: 'prose', cell: (row) => typeOf(row.schema) },
      {
        key: 'text',
        header: 'Meaning',
        kind: 'prose',
        cell: (row) =>
          prose(
            row.description ??
              (row.schema.description as string | undefined) ??
              (row.required ? 'Required.' : 'Optional.'),
          ),
      },
    ],
    empty: { title: 'No parameters', text: 'This call takes none.' },
  });
}

const everywhere: ReadonlySet<string> = new Set(commonErrors);

/** True for an answer that any call may give: such are listed once, under Errors, not again with every call. */
function isEverywhere([status, response]: [string, Json]): boolean {
  const reasons = [...String(response.description).matchAll(/`(\w+)`: /g)].map((match) => match[1]!);
  return Number(status) >= 400 && reasons.every((reason) => everywhere.has(reason));
}

function responseTable(operation: Operation): Html {
  return table<[string, Json]>({
    caption: 'Answers',
    captionVisible: true,
    rows: operation.responses.filter((response) => !isEverywhere(response)),
    columns: [
      { key: 'status', header: 'Status', kind: 'code', cell: ([status]) => status },
      { key: 'body', header: 'Body', cell: ([, response]) => typeOf(bodyOf(response)) },
      {
        key: 'text',
        header: 'When',
        kind: 'prose',
        cell: ([, response]) => prose(String(response.description)),
      },
    ],
    empty: { title: 'No answers', text: 'This call has none.' },
  });
}

/** Every code and reason; each row is where the `doc_url` of such an error leads. */
function errors(): Html {
  const rows = errorKinds.toSorted((a, b) => a.status - b.status);
  return section(
    {
      title: 'Errors',
      id: 'errors',
      description: prose(
        'Every error is one JSON object. Branch on code, show message, and name request_id when you ask us. Any call may answer 401, 402 or 403 of its key and account, 429, 500 and 503.',
      ),
    },
    table<(typeof rows)[number]>({
      caption: 'Errors',
      rows,
      columns: [
        { key: 'status', header: 'Status', kind: 'code', cell: (row) => String(row.status) },
        { key: 'code', header: 'Code', kind: 'code', cell: (row) => row.code },
        {
          key: 'reason',
          header: 'Reason',
          kind: 'code',
          cell: (row) => html`<span id="error-${row.reason ?? row.code}">${row.reason ?? ''}</span>`,
        },
        { key: 'text', header: 'Meaning', kind: 'prose', cell: (row) => prose(row.sentence) },
      ],
      empty: { title: 'No errors', text: 'There are none.' },
    }),
  );
}

function renderSchema(name: string, schema: Json): Html {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
  const required = new Set((schema.required ?? []) as string[]);
  return html`<div id="object-${name}">${table<[string, Json]>({
    caption: name,
    captionVisible: true,
    rows: properties,
    columns: [
      { key: 'field', header: 'Field', kind: 'code', cell: ([field]) => field },
      { key: 'type', header: 'Type', kind: 'prose', cell: ([, property]) => typeOf(property) },
      {
        key: 'text',
        header: 'Meaning',
        kind: 'prose',
        cell: ([field, property]) =>
          html`${required.has(field) ? '' : 'Optional. '}${prose((property.description as string | undefined) ?? '')}`,
      },
    ],
    empty: { title: name, text: 'Without fields.' },
  })}</div>`;
}

function listOperations(document: Json): Operation[] {
  return Object.entries(document.paths as Record<string, Record<string, Json>>).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method,
      path,
      operationId: operation.operationId as string,
      summary: operation.summary as string,
      description: operation.description as string,
      scope: operation['x-required-scope'] as string,
      parameters: operation.parameters as Parameter[],
      body: operation.requestBody ? bodyOf(operation.requestBody as Json) : null,
      responses: Object.entries(operation.responses as Record<string, Json>),
    })),
  );
}

function bodyOf(holder: Json): Json {
  const content = holder.content as Record<string, { schema: Json }> | undefined;
  return content?.['application/json']?.schema ?? {};
}

/** A schema in a few words, with links to the objects that it names. */
function typeOf(schema: Json): Content {
  const reference = schema.$ref as string | undefined;
  if (reference !== undefined) {
    const name = reference.slice(reference.lastIndexOf('/') + 1);
    return html`<a href="#object-${name}">${name}</a>`;
  }
  if (schema.anyOf) {
    return (schema.anyOf as Json[]).map((one, index) => html`${index > 0 ? ' or ' : ''}${typeOf(one)}`);
  }
  if (schema.enum) return (schema.enum as unknown[]).map(String).join(', ');
  if (schema.type === 'array') return html`list of ${typeOf((schema.items ?? {}) as Json)}`;
  if (schema.type === 'object' && schema.properties)
    return html`object: ${Object.keys(schema.properties as Json).join(', ')}`;
  if (schema.format === 'date-time') return 'time';
  return typeof schema.type === 'string' ? schema.type : 'none';
}

/** Text whose `parts in backticks` are code. */
function prose(text: string): Content {
  return text.split('`').map((part, index) => (index % 2 === 1 ? html`<code>${part}</code>` : part));
}
