import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { buildOpenApi, endpoints, errorKinds } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { clientDownloads } from '../parts/index.ts';

let world: World;
let customer: string;
let support: string;
before(async () => {
  world = await createWorld();
  customer = await world.signIn((await world.createCustomer('Reader')).email);
  await world.accounts.createPerson(systemActor, {
    email: 'support@staff.test',
    name: 'Support',
    password,
    staffRole: 'support',
  });
  support = await world.signIn('support@staff.test');
});
after(() => world[Symbol.asyncDispose]());

const publicBase = '/docs/api/';
const portalBase = '/client/developer/docs/';
const consoleBase = '/console/billing/usage/api/docs/';

async function get(path: string, cookie = ''): Promise<{ status: number; text: string; headers: Headers }> {
  const answer = await fetch(`${world.url}${path}`, {
    headers: { accept: 'text/html', cookie },
    redirect: 'manual',
  });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

/** Every page of a reference, by the links of its first one. */
async function readAll(base: string, cookie: string): Promise<Map<string, string>> {
  const first = await get(base, cookie);
  assert.equal(first.status, 200, base);
  const pages = new Map([[base, first.text]]);
  for (const [, path] of first.text.matchAll(new RegExp(`href="(${base}[a-z-]+/)"`, 'g'))) {
    const page = await get(path!, cookie);
    assert.equal(page.status, 200, path);
    pages.set(path!, page.text);
  }
  return pages;
}

describe('API-1.S4, API-1.S5, API-1.S6: the API reference in the portal, in public and in the console', () => {
  for (const [rule, base, cookieOf] of [
    ['API-1.S5: in public, without an account', publicBase, () => ''],
    ['API-1.S4: inside the portal', portalBase, () => customer],
    ['API-1.S6: in the console, also for support', consoleBase, () => support],
  ] as const) {
    test(`${rule}: every call with its examples, every error, every link leading somewhere`, async () => {
      const pages = await readAll(base, cookieOf());
      const whole = [...pages.values()].join('');
      for (const endpoint of endpoints) {
        assert.ok(
          pages.get(`${base}calls/`)!.includes(`${endpoint.method} /api/v2${endpoint.path}`),
          endpoint.id,
        );
        assert.ok(whole.includes(`class="operation" id="${endpoint.id}"`), endpoint.id);
      }
      for (const kind of errorKinds)
        assert.ok(pages.get(base)!.includes(`id="error-${kind.reason ?? kind.code}"`), kind.sentence);
      for (const [path, page] of pages) {
        const bytesMax = path === base ? 100_000 : 150_000;
        assert.ok(page.length < bytesMax, `${path} has ${page.length} bytes`);
        for (const [, target, fragment] of page.matchAll(/href="([^"#]*)#([^"]+)"/g)) {
          // What needs another sign-in is looked at where that one is.
          if (target !== '' && !target!.startsWith(base)) continue;
          const there = pages.get(target === '' ? path : target!);
          assert.ok(there?.includes(`id="${fragment}"`), `${path} leads to ${target}#${fragment}`);
        }
      }
    });
  }

  test('API-1.S6: the console’s has no link to creating a key, the others have', async () => {
    for (const page of (await readAll(consoleBase, support)).values())
      assert.doesNotMatch(page, /client\/developer/);
    assert.match((await get(publicBase)).text, /href="\/client\/developer\/#create"/);
    assert.match((await get(portalBase, customer)).text, /href="\/client\/developer\/#create"/);
  });

  test('strangers and customers do not read those that are not theirs', async () => {
    assert.equal((await get(portalBase)).status, 303);
    assert.equal((await get(consoleBase)).status, 303);
    assert.equal((await get(consoleBase, customer)).status, 404);
  });

  test('nothing of it comes from another host, and its policy lets nothing', async () => {
    for (const [path, page] of await readAll(publicBase, '')) {
      const foreign = [...page.matchAll(/(?:src|href)="(https?:\/\/[^"]*|\/\/[^"]*)"/g)].map(
        (match) => match[1],
      );
      assert.deepEqual(foreign, [], path);
    }
    const policy = (await get(publicBase)).headers.get('content-security-policy')!;
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /connect-src 'self'/);
  });

  test('the field for a key has no name and stands outside every form, so no browser sends or keeps it', async () => {
    const page = (await get(`${publicBase}servers/`)).text;
    const input = /<input id="try-key"[^>]*>/.exec(page)![0];
    assert.doesNotMatch(input, / name=/);
    assert.match(input, /type="password" autocomplete="off"/);
    const before = page.slice(0, page.indexOf(input));
    assert.equal(before.split('<form').length, before.split('</form>').length);
  });
});

test('the OpenAPI document is public, for scripts of other sites too, and compressed for who takes it', async () => {
  const path = '/docs/api/openapi.json';
  const answer = await fetch(`${world.url}${path}`, { headers: { 'accept-encoding': 'gzip' } });
  assert.equal(answer.headers.get('access-control-allow-origin'), '*');
  assert.deepEqual(
    [answer.headers.get('content-encoding'), answer.headers.get('vary')],
    ['gzip', 'accept-encoding'],
  );
  assert.ok(Number(answer.headers.get('content-length')) < 80_000);
  assert.deepEqual(await answer.json(), JSON.parse(JSON.stringify(buildOpenApi())));
  const plain = await fetch(`${world.url}${path}`, { headers: { 'accept-encoding': 'identity' } });
  assert.equal(plain.headers.get('content-encoding'), null);
});

test('every client is downloaded as the digests say; there is no other file', async () => {
  const digests = (await get(`${publicBase}clients/SHA256SUMS`)).text.trim().split('\n');
  assert.equal(digests.length, clientDownloads().length);
  for (const line of digests) {
    const [sha256, file] = line.split('  ') as [string, string];
    const answer = await fetch(`${world.url}${publicBase}clients/${file}`);
    const bytes = Buffer.from(await answer.arrayBuffer());
    assert.equal(createHash('sha256').update(bytes).digest('hex'), sha256, file);
    assert.match(answer.headers.get('content-disposition')!, /^attachment; /);
  }
  assert.equal((await get(`${publicBase}clients/package.json`)).status, 404);
});

test('programs that read documentation get all calls as plain text', async () => {
  const { text, headers } = await get(`${publicBase}llms.txt`);
  assert.match(headers.get('content-type')!, /^text\/plain/);
  for (const { method, path } of endpoints) assert.ok(text.includes(`[${method} /api/v2${path}]`), path);
});

test('API-1.S7: the former address of the reference leads to it', async () => {
  for (const path of ['/developers/api/', '/developers/api']) {
    const answer = await get(path);
    assert.deepEqual([answer.status, answer.headers.get('location')], [301, publicBase]);
  }
});

test('API-1.S8: every surface answers its own paths, before the fallback page', async () => {
  const fallback = await get('/offers/summer');
  assert.equal(fallback.status, 404);
  const surfaces: [string, string, number][] = [
    [publicBase, '', 200],
    ['/developers/api/', '', 301],
    ['/client/developer/', customer, 200],
    [portalBase, customer, 200],
    [consoleBase, support, 200],
    ['/api/v1/servers', '', 401],
    ['/api/v2/tenants', '', 401],
  ];
  for (const [path, cookie, status] of surfaces) {
    const answer = await get(path, cookie);
    assert.equal(answer.status, status, path);
    assert.notEqual(answer.text, fallback.text, path);
  }
});

test('API-1.S1, API-1.S2: below /api/ an unknown path is a JSON 404 of the API, never a page', async () => {
  for (const path of ['/api/v1/nothing', '/api/v2/nothing', '/api/v1/tenants', '/api/v3/servers']) {
    const answer = await get(path);
    assert.equal(answer.status, 404, path);
    assert.match(answer.headers.get('content-type')!, /application\/json/, path);
    assert.equal(JSON.parse(answer.text).error.code, 'not_found', path);
  }
});

test('health is told without an account and without a secret', async () => {
  for (const [path, body] of [
    ['/healthz', { status: 'ok' }],
    ['/readyz', { status: 'ready', checks: { database: 'ok', limits: 'ok' } }],
  ] as const) {
    const answer = await fetch(`${world.url}${path}`);
    assert.deepEqual([answer.status, await answer.json()], [200, body]);
  }
});
