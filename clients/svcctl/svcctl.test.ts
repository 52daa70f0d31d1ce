/** The command line as it is downloaded, against the API itself. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { describeCalls } from '../calls.ts';
import { createClient } from '../typescript/client.ts';
import { commonFlags, fieldsOf, flagOf } from './arguments.ts';
import { serveMcp } from './mcp.ts';
import { runCommand } from './svcctl.ts';

const calls = describeCalls(readOpenApi<Parameters<typeof describeCalls>[0]>(buildOpenApi()));

let world: World;
let key: string;
let folder: string;
let program: string;
before(async () => {
  world = await createWorld();
  await world.jobs.start();
  key = await world.createKey(await world.createCustomer('Command line'));
  folder = mkdtempSync(join(tmpdir(), 'svcctl-'));
  // Under a name without an ending, as it is installed.
  program = join(folder, 'svcctl');
  const page = await (await fetch(`${world.url}/docs/api/clients/`)).text();
  const [, path] = /href="([^"]*\/svcctl-[^"]*)"/.exec(page)!;
  writeFileSync(program, await (await fetch(`${world.url}${path}`)).text());
});
after(async () => {
  rmSync(folder, { recursive: true });
  await world.jobs.stop();
  await world[Symbol.asyncDispose]();
});

interface Run {
  code: number;
  out: string;
  err: string;
}

/** Runs the downloaded file to its end. */
async function download(words: readonly string[]): Promise<Run> {
  const env = { HOME: folder, SVCCTL_URL: world.url, SVCCTL_KEY: key };
  const child = spawn(process.execPath, [program, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: child.exitCode ?? (await once(child, 'exit'))[0], out, err };
}

/** A command in this process. */
async function svcctl(words: readonly string[], env: Record<string, string> = {}): Promise<Run> {
  const run = { code: 0, out: '', err: '' };
  run.code = await runCommand(calls, '0.0.0', words, {
    env: { HOME: folder, SVCCTL_URL: world.url, SVCCTL_KEY: key, ...env },
    print(printed) {
      run.out += printed;
    },
    complain(printed) {
      run.err += printed;
    },
    width: 120,
    ask: async () => null,
    readInput: async () => `${key}\n`,
    async *lines() {},
  });
  assert.ok(!`${run.out}${run.err}`.includes(key), 'the key is printed');
  return run;
}

test('a server is ordered, waited for, shown as a table and as JSON, stopped and destroyed', async () => {
  const order = [
    '--plan',
    'small',
    '--image',
    'debian-12',
    '--name',
    'naïve-日本',
    '--labels',
    'env=',
    '--json',
  ];
  const dry = await download(['deploy', ...order, '--dry-run']);
  assert.equal(JSON.parse(dry.out).would_create, true, dry.err);
  const made = await svcctl(['deploy', ...order]);
  assert.equal(made.code, 0, made.err);
  const server = JSON.parse(made.out);
  assert.deepEqual([server.status, server.labels], ['running', { env: '' }]);
  assert.match(server.root_password, /^\S{16,}$/);
  assert.match(made.err, new RegExp(`^server ${server.id}: `, 'm'));

  const table = await svcctl(['servers', 'list']);
  assert.match(table.out, /^ID +.*NAME.*\n\d+ .*naïve-日本/);

  const id = String(server.id);
  const stopped = await svcctl(['actions', 'act', id, '--action', 'stop']);
  assert.deepEqual([stopped.code, /^status +success$/m.test(stopped.out)], [0, true], stopped.err);
  const unasked = await svcctl(['servers', 'destroy', id]);
  assert.deepEqual([unasked.code, /add --yes/.test(unasked.err)], [2, true]);
  assert.equal((await svcctl(['servers', 'read', id])).code, 0, 'it is still there');
  assert.equal((await svcctl(['servers', 'destroy', id, '--yes'])).code, 0);
  const gone = await svcctl(['servers', 'read', id]);
  assert.deepEqual([gone.code, gone.out], [1, '']);
  assert.match(gone.err, /404 not_found, request req_[0-9A-Z]{26}/);
});

test('wrong usage says what is wrong before any call; a refusal names the fields', async () => {
  for (const [words, says] of [
    [['servers', 'create'], /missing: --plan/],
    [['servers', 'list', '--plna', 'x'], /plna/],
    [['servers', 'read'], /takes ID/],
    [['server', 'red'], /needs one of: list/],
    [['teapots'], /no command teapots/],
    [['networks', 'attach', '1', '--network-id', 'x'], /whole number/],
    [['servers', 'create', '--body', '{'], /not valid JSON/],
  ] as const) {
    const { code, err } = await svcctl(words, { SVCCTL_URL: 'https://nowhere.invalid' });
    assert.deepEqual([code, says.test(err)], [2, true], err);
  }
  const refused = await svcctl(['servers', 'create', '--plan', 'none-such', '--image', 'debian-12']);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /plan: There is no such plan\. Allowed: .*small/);
});

test('the key is kept in a file that only its owner reads, and is not sent in clear text to another machine', async () => {
  const none = { SVCCTL_URL: '', SVCCTL_KEY: '' };
  assert.equal((await svcctl(['configure', '--url', world.url], none)).code, 0);
  const file = join(folder, '.config/svcctl.json');
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal((await svcctl(['tenants'], none)).code, 0);
  chmodSync(file, 0o640);
  const open = await svcctl(['tenants'], none);
  assert.deepEqual([open.code, /chmod 600/.test(open.err)], [2, true]);
  const clear = await svcctl(['tenants'], { SVCCTL_URL: 'http://192.0.2.1' });
  assert.deepEqual([clear.code, /https:/.test(clear.err)], [2, true]);
});

test('every shell completes commands, flags and their words; no field has the flag of something else', async () => {
  const offered = async (...words: string[]) => (await svcctl(['complete', ...words])).out.trim().split('\n');
  assert.deepEqual(await offered('address', ''), [
    'list',
    'reserve',
    'read',
    'update',
    'release',
    'attach',
    'detach',
  ]);
  assert.deepEqual(await offered('serv'), ['servers']);
  assert.deepEqual(await offered('servers', 'des'), ['destroy']);
  assert.deepEqual(await offered('actions', 'act', '1', '--action', 're'), ['reboot', 'reset']);
  assert.ok((await offered('deploy', '--')).includes('--image'));
  for (const shell of ['bash', 'zsh', 'fish'])
    assert.match((await svcctl(['completion', shell])).out, /svcctl complete/);
  for (const call of calls)
    for (const { name } of fieldsOf(call))
      assert.ok(!(flagOf(name) in commonFlags(call)), `${call.id}: --${flagOf(name)}`);
});

test('a tab in a shell offers what svcctl says', async () => {
  const script = `source <(svcctl completion bash); COMP_WORDS=(svcctl servers up); COMP_CWORD=2; _svcctl; echo "\${COMPREPLY[@]}"`;
  chmodSync(program, 0o755);
  const path = `${folder}:${dirname(process.execPath)}:${process.env.PATH}`;
  const child = spawn('bash', ['-c', script], { env: { PATH: path, HOME: folder } });
  assert.equal((await text(child.stdout)).trim(), 'update');
});

/** A model with this key: it asks, and gets the answers of `svcctl mcp`. */
function createModel(token: string) {
  const input = new PassThrough();
  const waiting = new Map<number, (message: Message) => void>();
  const write = (line: string) => {
    const message = JSON.parse(line) as Message;
    waiting.get(message.id)!(message);
  };
  const client = createClient({ url: world.url, key: token });
  const over = serveMcp({ calls, version: '0.0.0', client, input: createInterface({ input }), write });
  const ask = (method: string, params: object = {}) =>
    new Promise<Message>((resolve) => {
      const id = waiting.size;
      waiting.set(id, resolve);
      input.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  return {
    ask,
    async use(name: string, given: object = {}) {
      const { result } = await ask('tools/call', { name, arguments: given });
      return { isRefused: result!.isError === true, text: result!.content[0]!.text };
    },
    async end() {
      input.end();
      await over;
    },
  };
}

interface Message {
  id: number;
  result?: {
    protocolVersion: string;
    tools: { name: string; inputSchema: { required: string[] }; annotations: { readOnlyHint: boolean } }[];
    content: { text: string }[];
    isError?: boolean;
  };
  error?: { code: number };
}

test('mcp: a read key has the tools that read; a full key tries a dry run first, and names the server that it destroys', async () => {
  const customer = await world.createCustomer('Model');
  const { serverId } = await world.deploy(customer.tenant, 'web-of-a-model');
  const reader = createModel(await world.createKey(customer, 'read'));
  const { result } = await reader.ask('initialize', { protocolVersion: '2025-06-18' });
  assert.equal(result!.protocolVersion, '2025-06-18');
  const readTools = (await reader.ask('tools/list')).result!.tools;
  assert.ok(readTools.length > 20 && readTools.every(({ annotations }) => annotations.readOnlyHint));
  assert.equal(
    (await reader.ask('tools/call', { name: 'destroy_server', arguments: { id: serverId } })).error!.code,
    -32_602,
  );
  assert.match((await reader.use('list_servers')).text, /web-of-a-model/);
  await reader.end();

  const writer = createModel(await world.createKey(customer));
  const names = (await writer.ask('tools/list')).result!.tools.map(({ name }) => name);
  assert.ok(names.includes('destroy_server') && !names.includes('create_api_key'));
  const order = { plan: 'small', image: 'debian-12' };
  assert.match((await writer.use('create_server', order)).text, /dry_run: true first/);
  const tried = await writer.use('create_server', { ...order, dry_run: true });
  assert.equal(JSON.parse(tried.text).would_create, true);
  assert.ok((await writer.use('create_server', { ...order, name: 'another-wish' })).isRefused);
  const made = await writer.use('create_server', order);
  assert.equal(
    JSON.parse(made.text).root_password,
    'not shown to a model; set a new one in the portal or with svcctl',
  );
  assert.ok((await writer.use('create_server', order)).isRefused, 'one dry run is one order');
  assert.match(
    (await writer.use('destroy_server', { id: serverId, server_name: 'web-1' })).text,
    /not the name/,
  );
  assert.equal((await writer.use('read_server', { id: serverId })).isRefused, false);
  const wish = { id: serverId, name: 'golden' };
  await writer.use('create_snapshot', { ...wish, dry_run: true });
  const snapshot = JSON.parse((await writer.use('create_snapshot', wish)).text).id as number;
  await world.jobs.drain();
  const other = { id: snapshot, server_name: 'another' };
  assert.match(
    (await writer.use('delete_snapshot', other)).text,
    new RegExp(`name of server ${serverId}\\.`),
  );
  const meant = { id: snapshot, server_name: 'web-of-a-model' };
  assert.equal((await writer.use('delete_snapshot', meant)).text, 'Done.');
  const destroyed = await writer.use('destroy_server', { id: serverId, server_name: 'web-of-a-model' });
  assert.equal(JSON.parse(destroyed.text).command, 'destroy');
  const refused = await writer.use('create_server', { plan: 'none-such', image: 'debian-12', dry_run: true });
  assert.match(refused.text, /"request_id":"req_/);
  await writer.end();
});
