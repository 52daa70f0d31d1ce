/**
 * The operations of the published OpenAPI document, as the proofs walk through them: what a caller has to name, and a
 * body that would do. Nothing here knows an endpoint by its name, so a new one joins every proof by being documented.
 */
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import { fingerprintSoftware } from '#contracts/port-scan/index.ts';

type Json = Record<string, unknown>;

/** A place in a request that names a thing. */
export interface NamedThing {
  in: 'path' | 'query' | 'body';
  name: string;
  /** `server`, `network`… */
  resource: string;
  isOptional: boolean;
  /** The member is a list of them. */
  isList?: boolean;
}

export interface Operation {
  id: string;
  version: 'v1' | 'v2';
  method: string;
  /** With `{name}` where a thing is named. */
  path: string;
  isSafe: boolean;
  hasBody: boolean;
  /** Takes a workspace in query, body or header. */
  selectsTenant: boolean;
  things: readonly NamedThing[];
  /** Names of the fields that a body may have. */
  bodyFields: readonly string[];
  /** A body with the required fields (one where none is required), without things. */
  sampleBody: Json | null;
  /** Required query parameters that name no thing. */
  sampleQuery: Readonly<Record<string, string>>;
}

/** What proofs send where the document says only "a text". */
const samples: Json = {
  plan: 'small',
  image: 'debian-12',
  location: 'fra',
  action: 'reboot',
  billing_cycle: 'hourly',
  hostname: 'proof.example.net',
  reverse_dns: 'proof.example.net',
  url: 'https://hooks.example.com/svc',
  name: 'proof',
  public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIcvEZ6PfU56tmbpZIWoyu5t5wHpTWVHJabI5CqJAZxo proof',
  // The finding that servers of the proofs have (isolation-world.ts).
  fingerprint: fingerprintSoftware({ product: 'OpenSSH', version: '9.6p1' }),
  cve_id: 'CVE-2024-0001',
};

/** Every operation, in the document's order. */
export function listOperations(): Operation[] {
  const document = readOpenApi<{ paths: Record<string, Record<string, Json>>; components: Json }>(
    buildOpenApi(),
  );
  const found: Operation[] = [];
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (['get', 'post', 'put', 'patch', 'delete'].includes(method))
        found.push(readOperation(document.components, nameEntry(path), method.toUpperCase(), operation));
    }
  }
  return found;
}

/** Entries of the catalogue belong to no workspace: their paths name one that there is. */
function nameEntry(path: string): string {
  return path.replace(/\/(plan|image|location)s\/\{id\}$/, (_, kind: string) => `/${kind}s/${samples[kind]}`);
}

/** The operation as it is called without and with the things that may be left out. */
export function variantsOf(operation: Operation): Operation[] {
  const needed = operation.things.filter((thing) => !thing.isOptional);
  if (needed.length === operation.things.length) return [operation];
  return [{ ...operation, things: needed }, operation];
}

function readOperation(components: Json, path: string, method: string, operation: Json): Operation {
  const parameters = operation.parameters as Json[];
  const schema = bodySchemaOf(components, operation);
  const properties = Object.entries((schema?.properties ?? {}) as Record<string, Json>);
  const named = (place: string) =>
    parameters
      .filter((one) => one.in === place && isOwned(one['x-resource']))
      .map(
        (one) =>
          ({
            in: place,
            name: one.name,
            resource: one['x-resource'],
            isOptional: !one.required,
          }) as NamedThing,
      );
  const required = (schema?.required ?? []) as string[];
  const inBody = properties
    .filter(([, property]) => isOwned(property['x-resource']))
    .map(
      ([name, property]): NamedThing => ({
        in: 'body',
        name,
        resource: property['x-resource'] as string,
        isOptional: !required.includes(name),
        isList: property.type === 'array',
      }),
    );
  return {
    id: operation.operationId as string,
    version: path.startsWith('/api/v1/') ? 'v1' : 'v2',
    method,
    path,
    isSafe: method === 'GET',
    hasBody: schema !== null,
    selectsTenant: parameters.some((one) => one['x-resource'] === 'tenant'),
    things: [...named('path'), ...named('query'), ...inBody],
    bodyFields: properties.map(([name]) => name),
    sampleBody: schema === null ? null : (sampleOf(components, schema) as Json),
    sampleQuery: Object.fromEntries(
      parameters
        .filter((one) => one.in === 'query' && one.required === true && !isOwned(one['x-resource']))
        .map((one) => [one.name, String(sampleOf(components, one.schema as Json, one.name as string))]),
    ),
  };
}

/** The catalogue is public; workspaces are a separate dimension. */
function isOwned(resource: unknown): boolean {
  return resource !== undefined && resource !== 'tenant' && resource !== 'catalog';
}

function bodySchemaOf(components: Json, operation: Json): Json | null {
  const body = operation.requestBody as { content: { 'application/json': { schema: Json } } } | undefined;
  return body === undefined ? null : resolve(components, body.content['application/json'].schema);
}

function resolve(components: Json, schema: Json): Json {
  if (typeof schema.$ref !== 'string') return schema;
  return (components.schemas as Record<string, Json>)[schema.$ref.split('/').at(-1)!]!;
}

function sampleOf(components: Json, given: Json, name = ''): unknown {
  const schema = resolve(components, given);
  const isOffered = !Array.isArray(schema.enum) || schema.enum.includes(samples[name]);
  if (name in samples && isOffered) return samples[name];
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (Array.isArray(schema.anyOf)) return sampleOf(components, schema.anyOf[0] as Json, name);
  switch (schema.type) {
    case 'integer':
    case 'number':
      return schema.minimum ?? 1;
    case 'boolean':
      return true;
    case 'array':
      return schema.minItems ? [sampleOf(components, schema.items as Json)] : [];
    case 'string':
      return 'proof-text';
    default:
      return sampleObject(components, schema);
  }
}

function sampleObject(components: Json, schema: Json): Json {
  const properties = (schema.properties ?? {}) as Record<string, Json>;
  const usable = Object.keys(properties).filter((name) => properties[name]!['x-resource'] !== 'tenant');
  const required = ((schema.required ?? []) as string[]).filter((name) => usable.includes(name));
  const free = usable.filter((name) => !isOwned(properties[name]!['x-resource']));
  // A change that changes nothing proves nothing: where no field is required, the best known one is sent.
  const chosen = required.length > 0 ? required : free.filter((name) => name in samples).slice(0, 1);
  return Object.fromEntries(
    chosen
      .filter((name) => !isOwned(properties[name]!['x-resource']))
      .map((name) => [name, sampleOf(components, properties[name]!, name)]),
  );
}
