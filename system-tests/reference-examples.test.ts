// Slow: runs the examples of the reference's guides, and waits for what each begins.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { answerOf, createClient } from '#clients/typescript/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import {
  createFindingMonitor,
  type FindingMonitor,
  projectionOf,
} from '#operations/testing/projection-of.ts';

/** A code block of a page, with its API call. */
interface Example {
  page: string;
  operation: string | null;
  label: string;
  code: string;
  /** Status of the answer that the page shows. */
  shownStatus: string | null;
}

let world: World;
let monitor: FindingMonitor;
let examples: Example[];
before(async () => {
  world = await createWorld();
  // The catalogue of the reference.
  const { db } = world.database;
  const size = { vcpus: 1, memoryMb: 2_048, diskGb: 20, hourlyQuanta: 60, monthlyCapQuanta: 40_000 };
  await ensurePlan(db, { slug: 'kvm-1', name: 'KVM 1', ...size });
  await ensureImage(db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  monitor = await createFindingMonitor(world);
  // The examples of calls run beside the reference, but for those of findings, and that which shows one of several statuses.
  examples = (await readExamples()).filter(
    ({ operation }) => operation === null || operation === 'createServer' || /finding/i.test(operation),
  );
});
after(() => world[Symbol.asyncDispose]());

async function readExamples(): Promise<Example[]> {
  const read = async (path: string) => (await fetch(`${world.url}${path}`)).text();
  const overview = await read('/docs/api/');
  const pages = new Set([
    '/docs/api/',
    ...overview.matchAll(/href="(\/docs\/api\/[a-z-]+\/)/g).map(([, path]) => path!),
  ]);
  const found: Example[] = [];
  for (const page of pages) {
    const html = page === '/docs/api/' ? overview : await read(page);
    const blocks =
      /<section class="operation" id="(\w+)">|<pre[^>]*aria-label="([^"]*)"><code>([\s\S]*?)<\/code>/g;
    let operation: string | null = null;
    for (const [, id, label, code] of html.matchAll(blocks)) {
      if (id !== undefined) operation = id;
      else if (label!.startsWith('Answer '))
        for (const one of found) {
          if (one.page === page && one.operation === operation)
            one.shownStatus = label!.slice('Answer '.length);
        }
      else found.push({ page, operation, label: label!, code: decode(code!), shownStatus: null });
    }
  }
  return found;
}

const decode = (html: string) =>
  html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/** An account with the objects of the examples: a server with a finding, and an action. */
async function prepare(operation: string | null) {
  const customer = await world.createCustomer('Reader');
  const key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  if (/finding/i.test(operation ?? '')) await deliverFinding(serverId);
  await world.jobs.drain();
  const [address] = await world.addresses.listAllocationsOfServers([serverId]);
  const [action] = await world.servers.listActions(systemActor, customer.tenant.id, serverId, 1);
  const named = (code: string) =>
    code
      .replaceAll(/\b48211\b/g, String(serverId))
      .replaceAll(/\b70123\b/g, String(action!.id))
      .replaceAll(/\b203\.0\.113\.10\b/g, /finding/i.test(operation ?? '') ? address!.address : '$&');
  return { customer, key, named };
}

/** The finding of the examples. */
async function deliverFinding(serverId: number): Promise<void> {
  await world.backdate(serverId, '2 days');
  const [address] = await world.addresses.listAllocationsOfServers([serverId]);
  assert.deepEqual(await monitor.deliver(projectionOf(address!)), ['accepted']);
}

/** Output of the shell: the status, with the body before it. */
async function runInShell(
  code: string,
  variables: Record<string, string>,
): Promise<{ status: string; body: string }> {
  const script = `curl() { command curl -sS -w '\\n%{http_code}' "$@"; }\n${code}`;
  const env = { ...process.env, URL: world.url, ...variables };
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], { env });
  const at = stdout.lastIndexOf('\n');
  return { status: stdout.slice(at + 1), body: stdout.slice(0, at) };
}

async function runAsTypeScript(code: string, key: string): Promise<void> {
  const api = createClient({
    ...{ url: world.url, key },
    // What a call begins is done before the example waits for it.
    async fetch(...given) {
      const answer = await fetch(...given);
      await world.jobs.drain();
      return answer;
    },
  });
  const plain = stripTypeScriptTypes(code.replace(/^import .* from 'virtual-servers-client';$/m, ''));
  const body = plain.replace(/const api = createClient\(.*\);/, '');
  const AsyncFunction = (async () => {}).constructor as new (
    ...given: string[]
  ) => (...given: unknown[]) => Promise<void>;
  await new AsyncFunction('api', 'answerOf', 'console', body)(api, answerOf, { log() {} });
}

test('every curl command of the reference works as copied, with the reader’s key and ids', async () => {
  // What the page of the clients installs is installed by the tests of the clients.
  const commands = examples.filter(
    ({ code, page }) => code.startsWith('curl ') && page !== '/docs/api/clients/',
  );
  assert.ok(commands.length >= 8, `${commands.length} commands`);
  for (const { page, operation, label, code, shownStatus } of commands) {
    const { customer, key, named } = await prepare(operation);
    let next = '';
    if (code.includes('$NEXT')) {
      await world.deploy(customer.tenant, 'web-2');
      const first = await fetch(`${world.url}/api/v2/servers?status=running&limit=1`, {
        headers: { authorization: `Bearer ${key}` },
      });
      next = ((await first.json()) as { pagination: { next_cursor: string } }).pagination.next_cursor;
    }
    const { status, body } = await runInShell(named(code), { KEY: key, NEXT: next });
    const where = `${page} ${operation ?? label}: ${body.slice(0, 300)}`;
    assert.match(status, /^2/, where);
    // Of several success statuses the page shows the one of the example.
    if (operation === 'createServer') assert.equal(status, shownStatus, where);
    if (operation === 'createServer') assert.ok(JSON.parse(body).root_password, where);
  }
});

test('every TypeScript example of the reference runs with the client, with valid imports', async () => {
  const snippets = examples.filter(({ label }) => label === 'TypeScript');
  assert.ok(snippets.length >= 6, `${snippets.length} snippets`);
  for (const { page, operation, code } of snippets) {
    const { key, named } = await prepare(operation);
    for (const [, from] of code.matchAll(/from '([^']+)'/g))
      assert.equal(from, 'virtual-servers-client', page);
    await assert.doesNotReject(runAsTypeScript(named(code), key), `${page} ${operation}: ${code}`);
  }
});

test('the first example of the client’s README runs from the order to the list', async () => {
  const readme = readFileSync(new URL('../clients/typescript/README.md', import.meta.url), 'utf8');
  const code = /```ts\n([\s\S]*?)```/.exec(readme)![1]!;
  const customer = await world.createCustomer('README');
  await runAsTypeScript(code, await world.createKey(customer));
  const servers = await world.servers.listServers(systemActor, customer.tenant.id, {
    limit: 9,
    order: 'name',
  });
  assert.deepEqual(
    servers.map(({ name }) => name),
    ['web-2'],
  );
});

test('the answer of a create call is shown with a descriptive name', () => {
  const create = examples.filter(({ operation }) => operation === 'createServer');
  assert.equal(create[0]?.shownStatus, '201');
  assert.match(
    create.find(({ label }) => label === 'TypeScript')!.code,
    /^const server = await api\.createServer\(/,
  );
  for (const { code } of examples) assert.doesNotMatch(code, /serverForecast|\.\/client\.ts/);
});
