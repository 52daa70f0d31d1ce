/** The OpenAPI document as the reference reads it. */
import { buildOpenApi, readOpenApi, resourceOf } from '#contracts/customer-api/index.ts';

export type Json = Record<string, unknown>;

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema: Json;
}

export interface Response {
  status: string;
  description: string;
  schema: Json | null;
  /** Of errors. */
  reasons: readonly string[];
  headers: readonly string[];
}

export interface Operation {
  /** As the client names its method: `createServer`. */
  id: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  scope: 'read' | 'full';
  /** Name of what it is about. */
  resource: string;
  isInV1: boolean;
  parameters: Parameter[];
  body: { schema: Json; isRequired: boolean } | null;
  responses: Response[];
}

export interface ReferenceResource {
  name: string;
  title: string;
  summary: string;
  operations: Operation[];
  /** Names of the schemas that are explained here. */
  objects: string[];
}

export type ReferenceDocument = ReturnType<typeof readDocument>;

/** Reads the document; every schema belongs to the resource that names it first. */
export function readDocument() {
  const document = readOpenApi<{
    paths: Record<string, Record<string, Json>>;
    webhooks: Record<string, { post: Json }>;
    components: { schemas: Record<string, Json> };
  }>(buildOpenApi());
  const { schemas } = document.components;
  const resources = new Map<string, ReferenceResource>();
  for (const [path, methods] of Object.entries(document.paths)) {
    if (!path.startsWith('/api/v2/')) continue;
    const { name, title, summary } = resourceOf(path.slice('/api/v2'.length));
    const resource = resources.get(name) ?? { name, title, summary, operations: [], objects: [] };
    resources.set(name, resource);
    const isInV1 = path.replace('/v2/', '/v1/') in document.paths;
    for (const [method, operation] of Object.entries(methods))
      resource.operations.push(readOperation(path, method, operation, name, isInV1));
  }
  const list = [...resources.values()];
  assignObjects(list, schemas);
  const webhooks = Object.entries(document.webhooks).map(([type, { post }]) => ({
    type,
    summary: post.summary as string,
    schema: schemaOf(post.requestBody as Json)!,
  }));
  return { resources: list, schemas, webhooks };
}

function readOperation(
  path: string,
  method: string,
  operation: Json,
  resource: string,
  isInV1: boolean,
): Operation {
  const id = (operation.operationId as string).replace(/^v2(.)/, (_, first: string) => first.toLowerCase());
  const body = operation.requestBody as Json | undefined;
  return {
    id,
    method: method.toUpperCase(),
    path,
    summary: operation.summary as string,
    description: operation.description as string,
    scope: operation['x-required-scope'] as 'read' | 'full',
    resource,
    isInV1,
    parameters: operation.parameters as Parameter[],
    body: body ? { schema: schemaOf(body)!, isRequired: body.required === true } : null,
    responses: Object.entries(operation.responses as Record<string, Json>).map(([status, response]) => ({
      status,
      description: String(response.description),
      schema: schemaOf(response),
      reasons: (response['x-reasons'] as string[] | undefined) ?? [],
      headers: Object.keys((response.headers as object | undefined) ?? {}),
    })),
  };
}

function schemaOf(holder: Json): Json | null {
  const content = holder.content as Record<string, { schema: Json }> | undefined;
  return content?.['application/json']?.schema ?? null;
}

function assignObjects(resources: ReferenceResource[], schemas: Record<string, Json>): void {
  const taken = new Set<string>();
  const claim = (resource: ReferenceResource, name: string) => {
    if (taken.has(name)) return;
    taken.add(name);
    resource.objects.push(name);
    for (const inner of namesIn(schemas[name])) claim(resource, inner);
  };
  for (const resource of resources)
    for (const operation of resource.operations)
      for (const name of namesIn([operation.body?.schema, operation.responses.map((one) => one.schema)]))
        claim(resource, name);
}

/** Names of the schemas that this one refers to. */
function namesIn(node: unknown): string[] {
  if (node === null || typeof node !== 'object') return [];
  return Object.entries(node).flatMap(([name, value]) =>
    name === '$ref' ? [nameOfReference(value as string)] : namesIn(value),
  );
}

export function nameOfReference(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

/** The schema itself where it is a reference to one. */
export function resolveSchema(schema: Json, schemas: Readonly<Record<string, Json>>): Json {
  return typeof schema.$ref === 'string' ? schemas[nameOfReference(schema.$ref)]! : schema;
}
