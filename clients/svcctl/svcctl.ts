/**
 * The command line of the customer API: a command for each of its calls, made of the OpenAPI document.
 *
 * Exit codes: 0 done, 1 the API refused, 2 wrong usage, 3 no usable answer, 4 what was waited for failed.
 */
import { createInterface as readLines } from 'node:readline';
import { createInterface } from 'node:readline/promises';
import type { Call } from '../calls.ts';
import { type CallOptions, type ClientOptions, List } from '../typescript/caller.ts';
import { type Client, createClient } from '../typescript/client.ts';
import { ApiError, ConnectionError, WaitError } from '../typescript/errors.ts';
import {
  commonFlags,
  fieldsOf,
  findCall,
  flagOf,
  isGroup,
  kindOf,
  type Request,
  readRequest,
  UsageError,
  waitsFor,
  wordsOf,
} from './arguments.ts';
import { complete, completionScript } from './completion.ts';
import { type Config, type Environment, readConfig, writeConfig } from './config.ts';
import { serveMcp } from './mcp.ts';
import { clean, renderAnswer, renderTable } from './print.ts';

/** What a process has around it. */
export interface Terminal {
  env: Environment;
  print(text: string): void;
  complain(text: string): void;
  /** Columns of text. */
  width: number;
  /** The answer of a person, not shown while it is typed if it is a secret; null where no person is there to be asked. */
  ask(question: string, isSecret?: boolean): Promise<string | null>;
  readInput(): Promise<string>;
  /** Lines of the input, until its end. */
  lines(): AsyncIterable<string>;
  /** Other pauses and time limits of calls than usual; for tests. */
  patience?: Pick<ClientOptions, 'wait' | 'timeoutMs'>;
}

/** Runs one command and returns its exit code. */
export async function runCommand(
  calls: readonly Call[],
  version: string,
  words: readonly string[],
  terminal: Terminal = processTerminal(),
): Promise<number> {
  try {
    return await dispatch(calls, version, words, terminal);
  } catch (error) {
    return complain(error, terminal);
  }
}

async function dispatch(
  calls: readonly Call[],
  version: string,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  const [first = 'help', ...rest] = words;
  if (first === 'help' || first === '--help' || first === '-h') return help(calls, rest, terminal);
  if (first === 'version' || first === '--version') terminal.print(`${version}\n`);
  else if (first === 'complete')
    terminal.print(
      complete(calls, rest)
        .map((one) => `${one}\n`)
        .join(''),
    );
  else if (first === 'completion') {
    const script = completionScript(rest[0] ?? '');
    if (script === null) throw new UsageError('svcctl completion needs one of: bash, zsh, fish');
    terminal.print(script);
  } else if (first === 'configure') return configure(rest, terminal);
  else if (first === 'mcp') {
    const client = connect(readConfig(terminal.env), {}, terminal.patience);
    const write = (line: string) => terminal.print(`${line}\n`);
    await serveMcp({ calls, version, client, input: terminal.lines(), write });
  } else return make(calls, words, terminal);
  return 0;
}

/** `svcctl configure --url URL`: the key comes from standard input, so that it stands in no list of processes. */
async function configure(rest: readonly string[], terminal: Terminal): Promise<number> {
  const [flag, url, ...others] = rest;
  if (flag !== '--url' || !url || others.length > 0)
    throw new UsageError('svcctl configure --url URL, with the key on standard input');
  checkUrl(url);
  const key = ((await terminal.ask('API key: ', true)) ?? (await terminal.readInput())).trim();
  if (!/^svc_[a-z0-9]{16}_[A-Za-z0-9_-]{43}$/.test(key)) throw new UsageError('that is no API key');
  terminal.complain(`written to ${writeConfig(terminal.env, { url, key })}\n`);
  return 0;
}

/** A key must not leave in clear text, but to this machine. */
function checkUrl(text: string): void {
  const url = URL.parse?.(text) ?? (URL.canParse(text) ? new URL(text) : null);
  const isLocal = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  if (url === null || (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal)))
    throw new UsageError('the URL begins with https://');
}

function connect(
  { url, key, tenant }: Config,
  flags: Request['flags'],
  patience: Terminal['patience'],
): Client {
  if (!url) throw new UsageError('set SVCCTL_URL, or run svcctl configure --url URL');
  checkUrl(url);
  if (!key) throw new UsageError('set SVCCTL_KEY, or run svcctl configure --url URL');
  return createClient({ url, key, tenant: (flags.tenant as string | undefined) ?? tenant, ...patience });
}

async function make(calls: readonly Call[], words: readonly string[], terminal: Terminal): Promise<number> {
  const { call, rest } = findCall(calls, words);
  const request = readRequest(call, rest);
  const { flags, body } = request;
  if (flags.help === true) return help(calls, [call.group, call.name], terminal);
  const client = connect(readConfig(terminal.env), flags, terminal.patience);
  const isDry = body?.dry_run === true;
  if (call.destroys && !isDry && flags.yes !== true) await confirm(call, request, client, terminal);
  const options = {
    ...request.query,
    ...(flags['if-match'] === undefined ? {} : { ifMatch: flags['if-match'] as string }),
    ...(flags['idempotency-key'] === undefined ? {} : { idempotencyKey: flags['idempotency-key'] as string }),
  } as CallOptions;
  const sent = {
    method: call.method,
    path: request.path,
    query: call.inQuery.map(({ name }) => name),
    ...(body === undefined ? {} : { body }),
    takesIdempotencyKey: call.takesIdempotencyKey,
    isIdempotent: call.isIdempotent,
    answersNothing: call.answersNothing,
    options,
  };
  if (call.items !== null && request.query.cursor === undefined) {
    const items: Record<string, unknown>[] = [];
    for await (const item of new List<never, Record<string, unknown>>(client, sent, call.items))
      items.push(item);
    terminal.print(flags.json === true ? json(items) : renderTable(items, terminal.width));
    return 0;
  }
  const answer = await client.call<Record<string, unknown> | undefined>(sent);
  const print = (done: unknown) =>
    terminal.print(
      done === undefined
        ? flags.json === true
          ? ''
          : 'done\n'
        : flags.json === true
          ? json(done)
          : renderAnswer(done, terminal.width),
    );
  if (answer === undefined || call.method === 'GET' || flags['no-wait'] === true || isDry) print(answer);
  else {
    try {
      print(await waitFor(call, answer, client, request, terminal));
    } catch (error) {
      // What came only once, such as a password, is not lost with the wait.
      if (flags.json === true && !(error instanceof UsageError)) print(answer);
      throw error;
    }
  }
  return 0;
}

const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

/** Asks for the name of what is lost; without a person there it takes `--yes`. */
async function confirm(call: Call, request: Request, client: Client, terminal: Terminal): Promise<void> {
  const path = call.path.startsWith('/api/v2/servers/{id}')
    ? request.path.split('/').slice(0, 5).join('/')
    : null;
  const found =
    path === null ? null : await client.call<{ name: string }>({ method: 'GET', path, options: {} });
  const wanted = found?.name ?? 'yes';
  const given = await terminal.ask(
    `${call.summary}. What is on it is lost. Type ${clean(wanted)} to go on: `,
  );
  if (given === null) throw new UsageError('this destroys something: add --yes');
  if (given.trim() !== wanted) throw new UsageError('not confirmed, nothing was done');
}

interface Waited {
  /** What a person reads meanwhile. */
  progress: string;
  isOver: boolean;
  failure: string | null;
  answer: object;
}

/** The answer when it is over: an action has succeeded, or a new server runs. What came only once stays in it. */
async function waitFor(
  call: Call,
  answer: Record<string, unknown>,
  client: Client,
  { flags }: Request,
  terminal: Terminal,
): Promise<Record<string, unknown>> {
  const seconds = Number(flags.timeout ?? 600);
  if (!(seconds >= 0)) throw new UsageError('--timeout is a number of seconds');
  const thing = waitsFor(call);
  if (thing === null) return answer;
  if (typeof answer.root_password === 'string' && flags.json !== true)
    terminal.complain(`root password: ${answer.root_password}\n`);
  const id = Number(thing === 'firewall' ? answer.server_id : answer.id);
  const look = lookAt[thing];
  const deadline = performance.now() + seconds * 1_000;
  let told = '';
  for (;;) {
    const leftMs = deadline - performance.now();
    const waitSeconds = Math.max(0, Math.min(5, Math.floor(leftMs / 1_000)));
    const found = await look(client, id, { waitSeconds, tenant: flags.tenant as string | undefined });
    if (found.progress !== told) terminal.complain(`${clean(found.progress)}\n`);
    told = found.progress;
    if (found.failure !== null) throw new WaitError(found.failure);
    if (found.isOver) return { ...answer, ...found.answer };
    if (leftMs <= 0) throw new WaitError(`not over after ${seconds} s: ${found.progress}`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

async function lookAtServer(client: Client, id: number, options: CallOptions): Promise<Waited> {
  const answer = await client.readServer(id, { ...options, wait_for: 'status:running' });
  return {
    answer,
    progress: `server ${id}: ${answer.status}`,
    isOver: answer.status === 'running',
    failure:
      answer.status === 'failed'
        ? `server ${id} failed: ${answer.failure?.message ?? 'no reason given'}`
        : null,
  };
}

async function lookAtFirewall(client: Client, id: number, options: CallOptions): Promise<Waited> {
  const answer = await client.readServerFirewall(id, options);
  return {
    answer,
    progress: `firewall of server ${id}: ${answer.status}`,
    isOver: answer.status === 'applied',
    failure: answer.status === 'failed' ? `the firewall of server ${id} was not applied` : null,
  };
}

async function lookAtSnapshot(client: Client, id: number, options: CallOptions): Promise<Waited> {
  const answer = await client.readSnapshot(id, options);
  const action = await lookAtAction(client, answer.action_id, options);
  // Read anew: the action may have ended behind the first look.
  return action.isOver ? { ...action, answer: await client.readSnapshot(id, options) } : action;
}

async function lookAtAction(client: Client, id: number, options: CallOptions): Promise<Waited> {
  const answer = await client.readAction(id, options);
  const { command, status, progress, error } = answer;
  return {
    answer,
    progress: `action ${id}: ${command} ${status} ${progress} %`,
    isOver: status === 'success',
    failure: status === 'error' ? `action ${id} failed: ${error?.message ?? 'no reason given'}` : null,
  };
}

const lookAt = {
  server: lookAtServer,
  firewall: lookAtFirewall,
  snapshot: lookAtSnapshot,
  action: lookAtAction,
};

function complain(error: unknown, terminal: Terminal): number {
  if (error instanceof ApiError) {
    const lines = [
      `error: ${error.error.message}`,
      ...error.fields.map(
        ({ path, message, allowed }) =>
          `  ${path}: ${message}${allowed ? ` Allowed: ${allowed.join(', ')}` : ''}`,
      ),
      `  ${error.status} ${error.reason ?? error.code}, request ${error.requestId}`,
    ];
    terminal.complain(`${lines.map(clean).join('\n')}\n`);
    return 1;
  }
  if (error instanceof UsageError) {
    terminal.complain(`svcctl: ${clean(error.message)}\n`);
    return 2;
  }
  if (!(error instanceof Error)) throw error;
  terminal.complain(`error: ${clean(error.message)}\n`);
  return error instanceof ConnectionError ? 3 : error instanceof WaitError ? 4 : 1;
}

function help(calls: readonly Call[], words: readonly string[], terminal: Terminal): number {
  if (words.length === 0) {
    const lines = calls.map((call): [string, string] => [commandOf(call), call.summary]);
    terminal.print(
      `usage: svcctl COMMAND [ARGUMENT …] [--FLAG …]\n\n${columns(lines)}\n${columns([
        ['deploy', 'The same as servers create'],
        ['configure --url URL', 'Keep the address and the key, which comes from standard input'],
        ['completion bash|zsh|fish', 'Completion for a shell'],
        ['mcp', 'A server of the Model Context Protocol, on standard input and output'],
        ['help COMMAND', 'What a command takes'],
      ])}\nAddress and key: SVCCTL_URL and SVCCTL_KEY, or svcctl configure. Exit codes: 1 refused, 2 wrong usage, 3 no answer, 4 failed.\n`,
    );
    return 0;
  }
  const group = calls.filter((call) => isGroup(call.group, words[0]!));
  if (words.length === 1 && group.length > 1) {
    terminal.print(columns(group.map((call) => [commandOf(call), call.summary])));
    return 0;
  }
  const { call } = findCall(calls, words);
  const flags = fieldsOf(call).map(({ name, isRequired, description, schema }): [string, string] => {
    const kind = kindOf(schema);
    const takes = {
      boolean: '',
      list: ' VALUE …',
      pairs: ' NAME=VALUE …',
      json: ' JSON',
      integer: ' N',
      string: ' TEXT',
      'name-or-id': ' NAME',
    }[kind];
    const words = wordsOf(schema);
    return [
      `--${kind === 'boolean' ? '[no-]' : ''}${flagOf(name)}${takes}`,
      `${isRequired ? 'required. ' : ''}${description}${words.length > 0 ? ` One of: ${words.join(', ')}.` : ''}`,
    ];
  });
  const common = Object.entries(commonFlags(call)).map(([name, [takes, sentence]]): [string, string] => [
    `--${name}${takes === null ? '' : ` ${takes}`}`,
    sentence,
  ]);
  terminal.print(
    `usage: svcctl ${commandOf(call)} [--FLAG …]\n\n${call.summary}. ${call.description}\n\n${columns(flags)}\n${columns(common)}`,
  );
  return 0;
}

const commandOf = (call: Call) =>
  [call.group, call.name, ...call.inPath.map(({ name }) => name.toUpperCase())].join(' ');

function columns(lines: readonly [string, string][]): string {
  const width = Math.min(44, Math.max(0, ...lines.map(([name]) => name.length)));
  return lines
    .map(([name, text]) => `  ${name.padEnd(width)}  ${text}`.trimEnd())
    .map((line) => `${line}\n`)
    .join('');
}

/** The terminal of this process. */
function processTerminal(): Terminal {
  const { stdin, stdout, stderr, env } = process;
  return {
    env,
    print: (text) => void stdout.write(text),
    complain: (text) => void stderr.write(text),
    width: stdout.columns ?? 200,
    async ask(question, isSecret = false) {
      if (!stdin.isTTY || !stderr.isTTY) return null;
      stderr.write(question);
      // Without an output the terminal shows nothing of what is typed.
      const lines = createInterface({
        input: stdin,
        terminal: true,
        ...(isSecret ? {} : { output: stderr }),
      });
      try {
        return await lines.question('');
      } finally {
        lines.close();
        if (isSecret) stderr.write('\n');
      }
    },
    async readInput() {
      let text = '';
      for await (const piece of stdin.setEncoding('utf8')) text += piece;
      return text;
    },
    lines: () => readLines({ input: stdin }),
  };
}
