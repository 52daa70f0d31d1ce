/** The Python client: `runtime.py`, then the bodies of the API and a method for each call, of the OpenAPI document. */
import { readFileSync } from 'node:fs';
import { type Call, type Document, describeCalls, type Field, type Schema } from '../calls.ts';

/** One module. */
export function generatePython(document: Document, version: string): string {
  const runtime = readFileSync(new URL('runtime.py', import.meta.url), 'utf8');
  const bodies = writeBodies(document.components.schemas);
  const methods = describeCalls(document).map(writeMethod);
  return `${runtime}

VERSION = ${quote(version)}

${bodies}

class Client(BaseClient):
    """A method for each call of the API."""

${methods.join('\n')}
    def wait_for_server(self, id: int, status: str = "running", *, timeout: float = 600.0, tenant: int | str | None = None) -> Server:
        """The server as soon as it has this status. Raises WaitError when it failed, or after so many seconds."""

        def look(wait: int) -> Server | None:
            server = self.read_server(id, wait_for=f"status:{status}", wait=wait, tenant=tenant)
            if server["status"] == "failed" and status != "failed":
                failure = server["failure"]
                raise WaitError(f"server {id} failed: {failure['message'] if failure else 'no reason given'}")
            return server if server["status"] == status else None

        return cast("Server", self._wait(f"server {id} to be {status}", timeout, look))

    def wait_for_action(self, id: int, *, timeout: float = 600.0, tenant: int | str | None = None) -> ServerAction:
        """The action when it has succeeded. Raises WaitError when it failed, or after so many seconds."""

        def look(wait: int) -> ServerAction | None:
            action = self.read_action(id, wait=wait, tenant=tenant)
            if action["status"] == "error":
                error = action["error"]
                raise WaitError(f"action {id} failed: {error['message'] if error else 'no reason given'}")
            return action if action["status"] == "success" else None

        return cast("ServerAction", self._wait(f"action {id}", timeout, look))
`;
}

/** A `TypedDict` for each schema with members, and for each object inside it. */
function writeBodies(schemas: Readonly<Record<string, Schema>>): string {
  const taken = new Set(Object.keys(schemas));
  const texts: string[] = [];
  const write = (name: string, schema: Schema) => {
    const required = new Set((schema.required ?? []) as string[]);
    const members = Object.entries((schema.properties ?? {}) as Record<string, Schema>).map(
      ([member, inner]): [string, string] => {
        const type = typeOf(inner, (object) => {
          const own = `${name}${pascal(member)}`;
          const free = taken.has(own) ? `${own}Inside` : own;
          taken.add(free);
          write(free, object);
          return free;
        });
        return [member, required.has(member) ? type : `NotRequired[${type}]`];
      },
    );
    texts.push(
      members.every(([member]) => isName(member))
        ? `class ${name}(TypedDict):\n${members.map(([member, type]) => `    ${member}: ${type}\n`).join('') || '    pass\n'}`
        : `${name} = TypedDict(${quote(name)}, {${members.map(([member, type]) => `${quote(member)}: ${quote(type)}`).join(', ')}})\n`,
    );
  };
  for (const [name, schema] of Object.entries(schemas)) {
    if (schema.properties !== undefined) write(name, schema);
    else texts.push(`${name} = ${quote(typeOf(schema, () => 'dict[str, Any]'))}\n`);
  }
  return texts.join('\n\n');
}

/** A type of Python; `nameObject` says how an object without a title is called. */
function typeOf(schema: Schema, nameObject: (schema: Schema) => string = () => 'dict[str, Any]'): string {
  if (typeof schema.$ref === 'string') return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  if (typeof schema.title === 'string') return schema.title;
  const choices = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
  if (choices) return [...new Set(choices.map((one) => typeOf(one, nameObject)))].join(' | ');
  if (schema.enum)
    return `Literal[${(schema.enum as unknown[]).map((one) => (typeof one === 'string' ? quote(one) : String(one))).join(', ')}]`;
  switch (schema.type) {
    case 'array':
      return `list[${typeOf((schema.items ?? {}) as Schema, nameObject)}]`;
    case 'object': {
      if (schema.properties !== undefined) return nameObject(schema);
      const values = Object.values((schema.patternProperties ?? {}) as Record<string, Schema>)[0];
      return `dict[str, ${values ? typeOf(values) : 'Any'}]`;
    }
    case 'integer':
      return 'int';
    case 'number':
      return 'float';
    case 'string':
      return 'str';
    case 'boolean':
      return 'bool';
    case 'null':
      return 'None';
    default:
      return 'Any';
  }
}

function writeMethod(call: Call): string {
  const options = ['tenant: int | str | None = None'];
  const sent = [quote(call.method), pathOf(call)];
  const inQuery = call.inQuery.filter(({ name }) => call.items === null || name !== 'cursor');
  const fields = [...inQuery, ...(call.body ?? [])];
  if (inQuery.length > 0) sent.push(`query=${dictionaryOf(inQuery)}`);
  if (call.body !== null) sent.push(`body=${dictionaryOf(call.body)}`);
  sent.push('tenant=tenant');
  const take = (isTaken: boolean, name: string, type: string) => {
    if (!isTaken) return;
    options.push(`${name}: ${type} | None = None`);
    sent.push(`${name}=${name}`);
  };
  take(call.takesIdempotencyKey, 'idempotency_key', 'str');
  take(call.takesIfMatch, 'if_match', 'str');
  take(call.takesPrefer, 'wait', 'int');
  if (call.takesIdempotencyKey) sent.push('takes_idempotency_key=True');
  if (call.isIdempotent) sent.push('is_idempotent=True');
  if (call.answersNothing) sent.push('answers_nothing=True');
  /** The parameters; `dryRun` is the type of the field of that name, required where it is given. */
  const parameters = (dryRun?: string) => {
    const typed = fields.map(({ name, isRequired, schema }) => {
      const type = (name === 'dry_run' && dryRun) || typeOf(schema);
      const isNeeded = isRequired || type === 'Literal[True]';
      return { isNeeded, text: `${nameOf(name)}: ${type}${isNeeded ? '' : ' | _Unset = UNSET'}` };
    });
    const needed = typed.filter(({ isNeeded }) => isNeeded);
    const all = [
      'self',
      ...call.inPath.map(({ name, schema }) => `${nameOf(name)}: ${typeOf(schema)}`),
      '*',
      ...[...needed, ...typed.filter(({ isNeeded }) => !isNeeded)].map(({ text }) => text),
      ...options,
    ];
    return all.join(', ');
  };
  const answer =
    call.items !== null
      ? `Listing[${call.itemType ?? 'dict[str, Any]'}]`
      : [...new Set(call.answersNothing ? ['None'] : call.answers)].join(' | ') || 'Any';
  const body =
    call.items !== null
      ? `return Listing(self, ${quote(call.items)}, ${pathOf(call)}, ${inQuery.length > 0 ? dictionaryOf(inQuery) : '{}'}, tenant)`
      : `return cast(${quote(answer)}, self._call(${sent.join(', ')}))`;
  const forecast = call.answers.find((name) => name.endsWith('Forecast'));
  const variants =
    fields.some(({ name }) => name === 'dry_run') && forecast !== undefined
      ? ([
          ['Literal[True]', forecast],
          ['Literal[False]', call.answers.filter((name) => name !== forecast).join(' | ')],
        ] as const)
      : [];
  const overloads = variants.map(
    ([dryRun, type]) => `    @overload\n    def ${snake(call.id)}(${parameters(dryRun)}) -> ${type}: ...\n\n`,
  );
  return `${overloads.join('')}    def ${snake(call.id)}(${parameters()}) -> ${answer}:
        """${`${call.summary}. ${call.description}`.replaceAll('\\', '\\\\').replaceAll('"""', "'''")}"""
        ${body}
`;
}

const dictionaryOf = (fields: readonly Field[]) =>
  `{${fields.map(({ name }) => `${quote(name)}: ${nameOf(name)}`).join(', ')}}`;

function pathOf({ path, inPath }: Call): string {
  if (inPath.length === 0) return quote(path);
  return `f${quote(path.replaceAll(/\{(\w+)\}/g, (_, name: string) => `{_part(${nameOf(name)})}`))}`;
}

const keywords = new Set([
  'from',
  'global',
  'class',
  'in',
  'is',
  'pass',
  'return',
  'import',
  'as',
  'with',
  'not',
  'or',
  'and',
]);
const isName = (text: string) => /^[A-Za-z_]\w*$/.test(text) && !keywords.has(text);
const nameOf = (name: string) => (keywords.has(name) ? `${name}_` : name);
const snake = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
const pascal = (name: string) =>
  name.replaceAll(/(?:^|[._-])(\w)/g, (_, first: string) => first.toUpperCase());
/** JSON's strings are Python's, as long as nothing in them lies beyond the first plane. */
const quote = (text: string) => JSON.stringify(text);
