/** The components of the OpenAPI document: each part that operations share stands there once. */

export type Json = Record<string, unknown>;

type Kind = 'parameters' | 'responses' | 'schemas';

export interface Parameter {
  name: string;
  in: 'path' | 'query' | 'header';
  required: boolean;
  description?: string;
  schema?: unknown;
  'x-resource'?: unknown;
}

export type Parts = ReturnType<typeof createParts>;

export function createParts() {
  const kept: Record<Kind, Json> = { parameters: {}, responses: {}, schemas: {} };

  /** A reference to the component of this name. Throws for a name that two different parts have. */
  function share(kind: Kind, name: string, part: Json): { $ref: string } {
    kept[kind][name] ??= part;
    if (JSON.stringify(kept[kind][name]) !== JSON.stringify(part))
      throw new Error(`two different ${kind} of the document are called ${name}`);
    return { $ref: `#/components/${kind}/${name}` };
  }

  /** A titled schema becomes a component and is referred to, wherever it stands; others are copied. */
  function schema(given: unknown): unknown {
    if (Array.isArray(given)) return given.map(schema);
    if (given === null || typeof given !== 'object') return given;
    const { title } = given as { title?: unknown };
    const walk = () =>
      Object.fromEntries(Object.entries(given).map(([name, value]) => [name, schema(value)]));
    if (typeof title !== 'string') return walk();
    if (!(title in kept.schemas)) {
      // Named before it is walked, for a schema that refers to itself.
      kept.schemas[title] = {};
      kept.schemas[title] = walk();
    }
    return { $ref: `#/components/schemas/${title}` };
  }

  /**
   * A reference to the parameter where operations share it (headers, ids in paths, the workspace, pages of lists), else the
   * parameter itself.
   */
  function shareParameter(parameter: Parameter): unknown {
    const { name, in: place, schema, 'x-resource': resource } = parameter;
    const component = {
      path: `${pascal(String(resource))}Id`,
      header: `${pascal(name)}Header`,
      query: `${pascal(name)}${(schema as Json | undefined)?.default ?? ''}`,
    }[place];
    if (place === 'path' && name !== 'id') return parameter;
    if (place === 'query' && !['tenant', 'limit', 'cursor'].includes(name)) return parameter;
    const found = kept.parameters[component];
    const isOther = found !== undefined && JSON.stringify(found) !== JSON.stringify(parameter);
    return isOther ? parameter : share('parameters', component, { ...parameter });
  }

  return {
    share,
    schema,
    shareParameter,
    components: () =>
      Object.fromEntries(
        Object.entries(kept).map(([kind, parts]) => [
          kind,
          Object.fromEntries(Object.entries(parts).sort(([a], [b]) => a.localeCompare(b))),
        ]),
      ),
  };
}

/** `not_found` as `NotFound`. */
export function pascal(name: string): string {
  return name.replaceAll(/(?:^|[._-])(\w)/g, (_, first: string) => first.toUpperCase());
}

interface Operation {
  parameters: Json[];
  responses: Record<string, Json>;
  'x-reasons'?: Readonly<Record<string, readonly string[]>>;
}

/**
 * The operations of the document with their shared parameters and responses in place; the response of an error has its
 * `x-reasons`. Schemas and headers stay references.
 */
export function readOpenApi<D = Json>(document: object): D {
  const copy = JSON.parse(JSON.stringify(document)) as {
    paths: Record<string, Record<string, Operation>>;
    webhooks: Record<string, Record<string, Operation>>;
    components: Record<string, Record<string, Json>>;
  };
  const inPlace = (part: Json): Json => {
    if (typeof part.$ref !== 'string') return part;
    const { $ref: reference, ...own } = part as { $ref: string };
    const [, , kind, name] = reference.split('/');
    return { ...structuredClone(copy.components[kind!]![name!]!), ...own };
  };
  for (const methods of [copy.paths, copy.webhooks].flatMap((group) => Object.values(group)))
    for (const operation of Object.values(methods)) {
      operation.parameters = operation.parameters.map(inPlace);
      for (const [status, response] of Object.entries(operation.responses)) {
        const reasons = operation['x-reasons']?.[status];
        operation.responses[status] = { ...inPlace(response), ...(reasons ? { 'x-reasons': reasons } : {}) };
      }
    }
  return copy as D;
}
