/**
 * ClickHouse's HTTP interface before the engine in process, as a process of its own, so that several programs of a test share one
 * server: statements in the URL or the body, `param_…` in the URL or in a form, formats, errors by status and
 * `X-ClickHouse-Exception-Code`. Data is in the folder of the first argument and outlives the process.
 *
 * The port and faults come over IPC (`start-http-engine.ts`).
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Session } from 'chdb';
import { insertFromFile, settingsForFewRows, takesBytes } from './native-body.ts';
import type { EngineCommand } from './start-http-engine.ts';

const [folder, port = '0'] = process.argv.slice(2);
const user = 'facts';
const session = new Session(folder);
session.query(`create database if not exists ${user}`);
session.query(`set ${settingsForFewRows}`);

/** The engine has one set of settings and parameters, so statements are one after the other. */
let last: Promise<unknown> = Promise.resolve();
/** What happens to the insert after so many others. */
let fault: Extract<EngineCommand, { kind: 'fault' }> | null = null;
let inserts = 0;
/** While it is frozen: what thaws it. */
let frozen: PromiseWithResolvers<void> | null = null;

const server = createServer((request, response) => {
  last = last.then(() => answer(request, response)).catch(() => response.destroy());
});

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await frozen?.promise;
  const url = new URL(request.url!, 'http://clickhouse');
  const body = Buffer.concat(await request.toArray());
  if (url.pathname === '/ping') return void response.end('Ok.\n');
  if (!isAllowed(request)) return refuse(response, 516, 'Authentication failed', 'AUTHENTICATION_FAILED');
  const database = url.searchParams.get('database') ?? 'default';
  if (!/^\w+$/.test(database) || !has(database))
    return refuse(response, 81, `Database ${database} does not exist`, 'UNKNOWN_DATABASE');
  const { parameters, statement, bytes } = read(request, url, body);
  if (/^\s*drop database/i.test(statement)) known.clear();
  const isInsert = /^\s*insert/i.test(statement);
  if (isInsert) inserts += 1;
  const due = isInsert && fault !== null && inserts > fault.after ? fault : null;
  if (due?.how === 'killed before') process.exit(9);
  if (due?.how === 'frozen') {
    fault = null;
    frozen = Promise.withResolvers();
    process.send?.({ isFrozen: true });
    await frozen.promise;
  }
  if (due?.how === 'refused') {
    const { code, name } = due.error!;
    fault = null;
    return refuse(response, code, 'Planned', name);
  }
  try {
    const run = (text: string) =>
      session.queryAsync(`use ${database}; ${parameters}${text}`, {
        format: url.searchParams.get('default_format') ?? 'TabSeparated',
      });
    const result = await (bytes ? insertFromFile(statement, bytes, run) : run(statement));
    if (due?.how === 'killed after') process.exit(9);
    response.writeHead(200, { 'x-clickhouse-query-id': url.searchParams.get('query_id') ?? '' });
    response.end(Buffer.from(result.bytes()));
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const [, code = '1000', what = text, name = 'UNKNOWN'] =
      /Code: (\d+)\. DB::Exception: (.*?)\.? \((\w+)\)/s.exec(text) ?? [];
    refuse(response, Number(code), what, name);
  }
}

function isAllowed({ headers }: IncomingMessage): boolean {
  const basic = Buffer.from(headers.authorization?.replace(/^Basic /, '') ?? '', 'base64').toString();
  const [name, ...password] =
    basic === '' ? [headers['x-clickhouse-user'], headers['x-clickhouse-key']] : basic.split(':');
  return name === user && password.join(':') === process.env.SVC_TEST_CLICKHOUSE_PASSWORD;
}

/** Databases that are there, so that only the first statement of each asks. */
const known = new Set<string>();

function has(database: string): boolean {
  if (known.has(database)) return true;
  const isThere = session.query(`select 1 from system.databases where name = '${database}'`, 'CSV') !== '';
  if (isThere) known.add(database);
  return isThere;
}

/** The statement with its data where that is text, its data where it is bytes, and what sets its parameters before it. */
function read(
  request: IncomingMessage,
  url: URL,
  body: Buffer,
): { parameters: string; statement: string; bytes: Buffer | null } {
  const fields = new Map(url.searchParams);
  const boundary = /boundary=(?:"([^"]+)"|([^;]+))/.exec(request.headers['content-type'] ?? '');
  if (boundary)
    for (const [name, value] of readForm(body.toString(), boundary[1] ?? boundary[2]!))
      fields.set(name, value);
  const query = fields.get('query') ?? '';
  const bytes = takesBytes(query) ? body : null;
  const given = [query, boundary || bytes ? '' : body.toString()].filter((part) => part !== '');
  const parameters = [...fields]
    .filter(([name]) => /^param_\w+$/.test(name))
    .map(([name, value]) => `${name} = '${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`);
  // One statement sets them all: each of its own would take a tenth of a millisecond.
  const set = parameters.length === 0 ? '' : `set ${parameters.join(', ')}; `;
  return { parameters: set, statement: given.join('\n'), bytes };
}

/** Name and value of each field of a form. */
function readForm(body: string, boundary: string): [string, string][] {
  return body.split(`--${boundary}`).flatMap((part): [string, string][] => {
    const [, name, value] = /name="([^"]+)"[\s\S]*?\r\n\r\n([\s\S]*)\r\n$/.exec(part) ?? [];
    return name === undefined ? [] : [[name, value!]];
  });
}

/** By code, as the server chooses the status. */
const statuses: Readonly<Record<number, number>> = { 516: 403, 81: 404, 60: 404, 62: 400, 159: 408 };

function refuse(response: ServerResponse, code: number, what: string, name: string): void {
  response.writeHead(statuses[code] ?? 500, { 'x-clickhouse-exception-code': String(code) });
  response.end(`Code: ${code}. DB::Exception: ${what}. (${name}) (version 26.7.2.1 (official build))\n`);
}

process.on('message', (command: EngineCommand) => {
  if (command.kind === 'fault') {
    fault = command;
    inserts = 0;
  }
  if (command.kind === 'thawed') {
    frozen?.resolve();
    frozen = null;
  }
});
process.on('disconnect', () => process.exit(0));
server.listen(Number(port), '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
});
