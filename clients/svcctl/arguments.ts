/** The words behind `svcctl`: which call they name, and what they give it. */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { type Call, type Field, type Schema, singular } from '../calls.ts';

/** The words name no call, or give it something that it can't take. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

export type Flags = Record<string, string | boolean | (string | boolean)[] | undefined>;

/** Flags that are no fields, with what they take (nothing: a switch) and a sentence for the help. */
export function commonFlags(call: Call): Readonly<Record<string, [takes: string | null, sentence: string]>> {
  return {
    ...(call.body !== null ? { body: ['JSON', 'the whole body as JSON, @FILE or @- (standard input)'] } : {}),
    ...(call.takesIfMatch ? { 'if-match': ['ETAG', 'change only this version'] } : {}),
    ...(call.takesIdempotencyKey
      ? { 'idempotency-key': ['KEY', 'name of a create; a repetition under it does nothing twice'] }
      : {}),
    ...(waitsFor(call) !== null && call.method !== 'GET'
      ? {
          timeout: ['SECONDS', 'how long to wait until it is over (600)'],
          'no-wait': [null, 'do not wait until it is over'],
        }
      : {}),
    ...(call.destroys ? { yes: [null, 'do not ask'] } : {}),
    tenant: ['ID', 'workspace, by id or slug'],
    json: [null, 'print JSON; a list is one array of all its items'],
    help: [null, 'this help'],
  };
}

/** What a command waits for: the server that it orders, what it changes, or the action that it starts. */
export function waitsFor({ answers }: Call): 'server' | 'firewall' | 'snapshot' | 'action' | null {
  if (answers.includes('CreatedServer')) return 'server';
  if (answers.includes('ServerFirewall')) return 'firewall';
  if (answers.includes('Snapshot')) return 'snapshot';
  return answers.some((name) => name.endsWith('Action')) ? 'action' : null;
}

/** Names that people use for a command, and what it is called. */
const aliases: Readonly<Record<string, readonly string[]>> = { deploy: ['servers', 'create'] };

/** The call that the first words name, and the words behind them; throws a `UsageError`. */
export function findCall(calls: readonly Call[], given: readonly string[]): { call: Call; rest: string[] } {
  const [first = '', ...others] = given;
  const words = aliases[first] ? [...aliases[first], ...others] : [...given];
  const group = calls.filter((call) => isGroup(call.group, words[0] ?? ''));
  if (group.length === 0) throw new UsageError(`there is no command ${words[0]}; svcctl help lists them`);
  const named = group.find((call) => call.name === words[1]);
  if (named) return { call: named, rest: words.slice(2) };
  // A group of one call needs no second word: `svcctl traffic 48211`.
  if (group.length === 1) return { call: group[0]!, rest: words.slice(1) };
  const names = group.map((call) => call.name).join(', ');
  throw new UsageError(`svcctl ${words[0]} needs one of: ${names}`);
}

/** In the singular or the plural. */
export const isGroup = (group: string, word: string) => [group, `${group}s`, singular(group)].includes(word);

export const flagOf = (name: string) => name.replaceAll('_', '-').toLowerCase();

/** Fields that have a flag, the query's and the body's. */
export const fieldsOf = (call: Call): Field[] => [...call.inQuery, ...(call.body ?? [])];

/** What the flags of a field are, for the parser and for completion. */
export function flagsOf(call: Call): Map<string, { takes: boolean; multiple: boolean }> {
  const flags = new Map<string, { takes: boolean; multiple: boolean }>();
  for (const [name, [takes]] of Object.entries(commonFlags(call)))
    flags.set(name, { takes: takes !== null, multiple: false });
  for (const field of fieldsOf(call)) {
    const kind = kindOf(field.schema);
    const name = flagOf(field.name);
    flags.set(name, { takes: kind !== 'boolean', multiple: kind === 'list' || kind === 'pairs' });
    if (kind === 'boolean' || isNullable(field.schema))
      flags.set(`no-${name}`, { takes: false, multiple: false });
  }
  return flags;
}

export interface Request {
  path: string;
  query: Record<string, unknown>;
  body: Record<string, unknown> | undefined;
  flags: Flags;
}

/** What the words say; throws a `UsageError` that says which is wrong. */
export function readRequest(call: Call, rest: readonly string[]): Request {
  const options = Object.fromEntries(
    [...flagsOf(call)].map(([name, { takes, multiple }]) => [
      name,
      { type: takes ? ('string' as const) : ('boolean' as const), multiple },
    ]),
  );
  let parsed: { values: Flags; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...rest], options, allowPositionals: true }) as typeof parsed;
  } catch (error) {
    throw new UsageError((error as Error).message.split('. To specify')[0]!);
  }
  const { values: flags, positionals } = parsed;
  if (flags.help === true) return { path: call.path, query: {}, body: undefined, flags };
  if (positionals.length !== call.inPath.length) {
    const wanted = call.inPath.map(({ name }) => name.toUpperCase()).join(' ') || 'no further words';
    throw new UsageError(`svcctl ${call.group} ${call.name} takes ${wanted}`);
  }
  const path = call.inPath.reduce(
    (text, { name }, index) => text.replace(`{${name}}`, encodeURIComponent(positionals[index]!)),
    call.path,
  );
  const query = valuesOf(call.inQuery, flags);
  const ofFlags = valuesOf(call.body ?? [], flags);
  const whole = typeof flags.body === 'string' ? parseJson('body', readText(flags.body)) : {};
  if (flags.body !== undefined && call.body === null) throw new UsageError('this call takes no body');
  if (whole === null || typeof whole !== 'object') throw new UsageError('--body is not a JSON object');
  const body = { ...whole, ...ofFlags };
  const missing = [
    ...call.inQuery.filter(({ name, isRequired }) => isRequired && !(name in query)),
    ...(call.body ?? []).filter(({ name, isRequired }) => isRequired && !(name in body)),
  ];
  if (missing.length > 0)
    throw new UsageError(`missing: ${missing.map(({ name }) => `--${flagOf(name)}`).join(', ')}`);
  const isBodySent = call.body !== null && (call.method !== 'DELETE' || Object.keys(body).length > 0);
  return { path, query, body: isBodySent ? body : undefined, flags };
}

function valuesOf(fields: readonly Field[], flags: Flags): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const { name, schema } of fields) {
    const flag = flagOf(name);
    const given = flags[flag];
    if (flags[`no-${flag}`] === true) found[name] = kindOf(schema) === 'boolean' ? false : null;
    else if (given !== undefined) found[name] = readValue(flag, schema, given);
  }
  return found;
}

type Kind = 'string' | 'integer' | 'boolean' | 'list' | 'pairs' | 'json' | 'name-or-id';

function choicesOf(schema: Schema): Schema[] {
  const choices = ((schema.anyOf ?? schema.oneOf) as Schema[] | undefined) ?? [schema];
  return choices.filter((one) => one.type !== 'null');
}

const isNullable = (schema: Schema) => ((schema.anyOf ?? []) as Schema[]).some((one) => one.type === 'null');

/** How a value of this schema is written on a command line. */
export function kindOf(schema: Schema): Kind {
  const choices = choicesOf(schema);
  if (choices.length > 1)
    return choices.every(({ type }) => type === 'string' || type === 'integer') ? 'name-or-id' : 'json';
  const [one] = choices as [Schema];
  if (one.type === 'array') {
    const items = choicesOf((one.items ?? {}) as Schema);
    return items.every(({ type }) => type === 'string' || type === 'integer') ? 'list' : 'json';
  }
  if (one.type === 'object') return one.properties === undefined ? 'pairs' : 'json';
  if (one.type === 'boolean' || one.type === 'string') return one.type;
  return one.type === 'integer' || one.type === 'number' ? 'integer' : 'json';
}

/** The words that a value may be, where they are a closed list. */
export function wordsOf(schema: Schema): readonly string[] {
  const choices = choicesOf(schema);
  const inner = choices[0]?.type === 'array' ? choicesOf((choices[0].items ?? {}) as Schema) : choices;
  return inner.flatMap((one) => ((one.enum ?? []) as unknown[]).map(String));
}

function readValue(flag: string, schema: Schema, given: NonNullable<Flags[string]>): unknown {
  const kind = kindOf(schema);
  if (kind === 'boolean') return true;
  const texts = [given].flat().map(String);
  if (kind === 'list') {
    const items = (choicesOf(schema)[0]?.items ?? {}) as Schema;
    return texts.map((text) => scalarOf(flag, kindOf(items), readText(text)));
  }
  if (kind === 'pairs') return Object.fromEntries(texts.map((text) => pairOf(flag, text)));
  return scalarOf(flag, kind, readText(texts[0]!));
}

function scalarOf(flag: string, kind: Kind, text: string): unknown {
  if (kind === 'json') return parseJson(flag, text);
  if (kind === 'name-or-id') return /^\d{1,15}$/.test(text) ? Number(text) : text;
  if (kind !== 'integer') return text;
  if (!/^-?\d{1,15}$/.test(text)) throw new UsageError(`--${flag} is a whole number`);
  return Number(text);
}

/** `name=value`; `name-` removes it. */
function pairOf(flag: string, text: string): [string, string | null] {
  const at = text.indexOf('=');
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)];
  if (at === -1 && text.length > 1 && text.endsWith('-')) return [text.slice(0, -1), null];
  throw new UsageError(`--${flag} is NAME=VALUE, or NAME- to remove it`);
}

/** `@FILE` is the file's text, `@-` what comes on standard input, `@@…` a text that begins with `@`. */
function readText(text: string): string {
  if (!text.startsWith('@') || text.startsWith('@@')) return text.replace(/^@@/, '@');
  try {
    return readFileSync(text === '@-' ? 0 : text.slice(1), 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new UsageError(`${text.slice(1)} can't be read: ${(error as Error).message}`);
  }
}

function parseJson(flag: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UsageError(`--${flag} is not valid JSON`);
  }
}
