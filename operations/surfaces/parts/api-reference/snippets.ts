/** A call as one would type it: for the shell, and for the TypeScript client. */
import type { Json, Operation } from './document.ts';
import { exampleParameter, exampleRequest } from './example.ts';

type Schemas = Readonly<Record<string, Json>>;

/** The answer that the call usually gets: what it made, where it makes something, and never that of a dry run. */
export function usualAnswer(operation: Operation): Operation['responses'][number] | undefined {
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
