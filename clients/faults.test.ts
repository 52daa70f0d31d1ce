/** What broke clients of other providers, tried on each of ours. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import { type Call, describeCalls } from './calls.ts';
import { buildDownloads } from './downloads.ts';
import { commonFlags } from './svcctl/arguments.ts';
import { serveMcp, toolName } from './svcctl/mcp.ts';
import { runCommand } from './svcctl/svcctl.ts';
import { type Case, cases, faultsOf, playCases } from './testing/faults.ts';
import { createClient } from './typescript/index.ts';

const key = `svc_${'k'.repeat(16)}_${'S'.repeat(43)}`;
let played: Awaited<ReturnType<typeof playCases>>;
before(async () => {
  played = await playCases();
});
after(() => played.close());

/** What a client made of a case: what its caller got, or the name of the error. */
type Outcome = { gives: unknown } | { throws: string; says: string };

/** Null for a case that says nothing of this client. */
function check(outcomes: readonly (Outcome | null)[]): void {
  const wrong = cases.flatMap(({ report, title, gives, throws }, index) => {
    const outcome = outcomes[index]!;
    if (outcome === null) return [];
    const found = 'throws' in outcome ? { throws: outcome.throws } : { gives: outcome.gives ?? null };
    const wanted = throws === undefined ? { gives } : { throws };
    const faults = faultsOf(index, played.received[index]!);
    if (JSON.stringify(found) !== JSON.stringify(wanted)) faults.push(`got ${JSON.stringify(outcome)}`);
    if (JSON.stringify(outcome).includes(key)) faults.push('the key is in it');
    return faults.length === 0 ? [] : [`${report}, ${title}: ${faults.join(', ')}`];
  });
  played.forget();
  assert.deepEqual(wrong, []);
}

test('TypeScript: what was reported of other providers’ clients does not happen', async () => {
  const outcomes: Outcome[] = [];
  for (const [index, { call, seconds }] of cases.entries()) {
    const options = { wait: async () => {}, timeoutMs: (seconds ?? 60) * 1_000 };
    const client = createClient({ url: played.urlOf(index), key, ...options });
    type Method = (...given: unknown[]) => PromiseLike<unknown> & AsyncIterable<unknown>;
    const method = (client as unknown as Record<string, Method>)[call.id]!.bind(client);
    const given = [...(call.path ?? []), ...(call.body ? [call.body] : []), { ifMatch: call.ifMatch }];
    try {
      const answer = method(...given);
      if (!call.id.startsWith('list')) {
        outcomes.push({ gives: await answer });
        continue;
      }
      const items: unknown[] = [];
      for await (const item of answer) items.push(item);
      outcomes.push({ gives: items });
    } catch (error) {
      const { name, message } = error as Error;
      outcomes.push({ throws: name.replace(/Error$/, ''), says: message });
    }
  }
  check(outcomes);
});

/** The words that ask for a case, of what the command takes. */
function wordsOf(command: Call, { path = [], body, ifMatch }: Case['call']): string[] {
  const switches = ['no-wait', 'yes'].filter((name) => name in commonFlags(command));
  return [
    ...[command.group, command.name, ...path.map(String), '--json', ...switches.map((name) => `--${name}`)],
    ...(body ? ['--body', JSON.stringify(body)] : []),
    ...(ifMatch ? ['--if-match', ifMatch] : []),
  ];
}

test('svcctl: what was reported of other providers’ clients does not happen', async () => {
  const commands = describeCalls(readOpenApi<Parameters<typeof describeCalls>[0]>(buildOpenApi()));
  const outcomes: Outcome[] = [];
  for (const [index, { call, seconds }] of cases.entries()) {
    let [out, err] = ['', ''];
    const words = wordsOf(commands.find(({ id }) => id === call.id)!, call);
    const code = await runCommand(commands, '0.0.0', words, {
      env: { SVCCTL_URL: played.urlOf(index), SVCCTL_KEY: key },
      print(text) {
        out += text;
      },
      complain(text) {
        err += text;
      },
      width: 100,
      ask: async () => null,
      readInput: async () => '',
      async *lines() {},
      patience: { wait: async () => {}, timeoutMs: (seconds ?? 60) * 1_000 },
    });
    const status = /^ {2}(\d{3}) /m.exec(err)?.[1] ?? '';
    const names: Readonly<Record<string, string>> = { '404': 'NotFound', '429': 'RateLimited' };
    if (code === 0) outcomes.push({ gives: out === '' ? null : JSON.parse(out) });
    else outcomes.push({ throws: code === 3 ? 'Connection' : (names[status] ?? 'Api'), says: err });
  }
  check(outcomes);
});

test('mcp: what was reported of other providers’ clients does not happen', async () => {
  const calls = describeCalls(readOpenApi<Parameters<typeof describeCalls>[0]>(buildOpenApi()));
  const outcomes: (Outcome | null)[] = [];
  for (const [index, { call, seconds }] of cases.entries()) {
    const tool = calls.find(({ id }) => id === call.id)!;
    // A model reads lists by pages, knows no tags, and tries an order as a dry run first.
    const hasRules = tool.destroys || tool.body?.some(({ name }) => name === 'dry_run') === true;
    if (call.id.startsWith('list') || call.ifMatch !== undefined || hasRules) {
      outcomes.push(null);
      continue;
    }
    const patience = { wait: async () => {}, timeoutMs: (seconds ?? 60) * 1_000 };
    const client = createClient({ url: played.urlOf(index), key, ...patience });
    const given = Object.fromEntries(tool.inPath.map(({ name }, at) => [name, call.path![at]]));
    const params = { name: toolName(tool), arguments: { ...given, ...call.body } };
    let line = '';
    await serveMcp({
      ...{ calls, version: '0.0.0' },
      client: Object.assign(client, { readKey: async () => ({ scope: 'full' }) }) as typeof client,
      input: Readable.from([JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })]),
      write(answer) {
        line = answer;
      },
    });
    const { isError, content } = JSON.parse(line).result;
    const { text } = content[0];
    const names: Readonly<Record<string, string>> = { not_found: 'NotFound', rate_limited: 'RateLimited' };
    if (isError !== true) outcomes.push({ gives: text === 'Done.' ? null : JSON.parse(text) });
    else if (!text.startsWith('{')) outcomes.push({ throws: 'Connection', says: text });
    else outcomes.push({ throws: names[JSON.parse(text).code] ?? 'Api', says: text });
  }
  assert.ok(outcomes.filter((one) => one !== null).length >= 10);
  check(outcomes);
});

test('Python: what was reported of other providers’ clients does not happen', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'faults-'));
  try {
    const wheel = buildDownloads(readOpenApi<Parameters<typeof buildDownloads>[0]>(buildOpenApi())).find(
      ({ kind }) => kind === 'python',
    )!;
    writeFileSync(join(folder, wheel.file), wheel.bytes);
    const calls = cases.map(({ call, seconds }, index) => ({ ...call, seconds, url: played.urlOf(index) }));
    const script = fileURLToPath(new URL('testing/faults.py', import.meta.url));
    // Names of any script are printed under any locale.
    const env = { PATH: process.env.PATH, PYTHONPATH: join(folder, wheel.file), LC_ALL: 'C', KEY: key };
    const run = promisify(execFile)('python3', [script, JSON.stringify(calls)], { env });
    check(JSON.parse((await run).stdout));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
