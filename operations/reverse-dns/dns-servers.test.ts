// Slow: starts PowerDNS and BIND.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { until } from '#service-kit/testing/until.ts';
import { readReverseDns } from './index.ts';
import { findZone, recordOf } from './zones.ts';

const schema = '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql';
const missing = ['/usr/sbin/pdns_server', '/usr/sbin/named', schema].filter((file) => !existsSync(file));
const skip = missing.length > 0 ? `needs ${missing.join(', ')}` : false;

const secret = randomBytes(32).toString('base64');
const apiKey = randomBytes(16).toString('hex');
const children: ChildProcess[] = [];
let folder: string;
let ports: { pdns: number; web: number; bind: number };

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

before(async () => {
  if (skip) return;
  folder = await mkdtemp(join(tmpdir(), 'svc-dns-'));
  ports = { pdns: await freePort(), web: await freePort(), bind: await freePort() };
  await startPowerDns();
  await startBind();
});
after(async () => {
  await Promise.all(
    children.map((child) => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGKILL');
      return child.exitCode === null ? ended : undefined;
    }),
  );
  if (folder) await rm(folder, { recursive: true, force: true });
});

function start(program: string, ...args: string[]): void {
  children.push(spawn(program, args, { stdio: 'ignore' }));
}

async function startPowerDns(): Promise<void> {
  const file = join(folder, 'pdns.sqlite');
  const database = new DatabaseSync(file);
  database.exec(await readFile(schema, 'utf8'));
  database.close();
  start(
    '/usr/sbin/pdns_server',
    ...[`--config-dir=${folder}`, '--daemon=no', '--guardian=no', '--launch=gsqlite3'],
    ...[`--gsqlite3-database=${file}`, `--socket-dir=${folder}`, '--local-address=127.0.0.1'],
    ...[`--local-port=${ports.pdns}`, '--webserver=yes', '--webserver-address=127.0.0.1'],
    ...[`--webserver-port=${ports.web}`, '--api=yes', `--api-key=${apiKey}`, '--setuid=', '--setgid='],
  );
  const zones = `http://127.0.0.1:${ports.web}/api/v1/servers/localhost/zones`;
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  await until(
    'PowerDNS answers',
    60_000,
    async () => (await fetch(zones, { headers }).catch(() => null))?.ok === true,
  );
  for (const name of ['113.0.203.in-addr.arpa.', '3.1.1.0.8.b.d.0.1.0.0.2.ip6.arpa.']) {
    const body = JSON.stringify({ name, kind: 'Native', nameservers: ['ns.example.net.'] });
    assert.equal((await fetch(zones, { method: 'POST', headers, body })).status, 201);
  }
}

const bindZones = [
  '100.51.198.in-addr.arpa',
  '64-127.2.0.192.in-addr.arpa',
  '4.1.1.0.8.b.d.0.1.0.0.2.ip6.arpa',
];

async function startBind(): Promise<void> {
  const head = '$TTL 60\n@ IN SOA ns.example.net. root.example.net. 1 60 60 60 60\n@ IN NS ns.example.net.\n';
  const files = bindZones.map((zone, index) => ({ zone, file: join(folder, `zone-${index}`) }));
  for (const { file } of files) await writeFile(file, head);
  const forward = join(folder, 'forward');
  await writeFile(
    forward,
    `${head}ns IN A 127.0.0.1\nweb-1 IN A 203.0.113.10\nweb-1 IN AAAA 2001:db8:113::10\n`,
  );
  await writeFile(
    join(folder, 'named.conf'),
    `options { directory "${folder}"; listen-on port ${ports.bind} { 127.0.0.1; }; listen-on-v6 { none; };
      pid-file none; session-keyfile none; recursion no; dnssec-validation no; };
    controls { };
    key "svc-key" { algorithm hmac-sha256; secret "${secret}"; };
    zone "example.net" { type primary; file "${forward}"; };
    ${files.map(({ zone, file }) => `zone "${zone}" { type primary; file "${file}"; allow-update { key svc-key; }; };`).join('\n')}\n`,
  );
  start('/usr/sbin/named', '-f', '-c', join(folder, 'named.conf'));
  await until(
    'BIND answers',
    60_000,
    async () =>
      (
        await resolverOf(ports.bind)
          .resolve4('ns.example.net')
          .catch(() => [])
      ).length === 1,
  );
}

function resolverOf(port: number): Resolver {
  const resolver = new Resolver({ timeout: 2_000, tries: 3 });
  resolver.setServers([`127.0.0.1:${port}`]);
  return resolver;
}

/** The names that the server answers with; none for a name that it does not have. */
const namesOf = (port: number, record: string) =>
  resolverOf(port)
    .resolvePtr(record)
    .catch(() => []);

/** The file of the settings; `more` replaces members of the update's key. */
async function writeFileOf(more: object = {}): Promise<string> {
  const powerdns = { url: `http://127.0.0.1:${ports.web}`, api_key: apiKey };
  const rfc2136 = { server: '127.0.0.1', port: ports.bind, key: 'svc-key', secret, ...more };
  const content = {
    resolvers: [`127.0.0.1:${ports.bind}`],
    zones: [
      { prefix: '203.0.113.0/24', powerdns },
      { prefix: '2001:db8:113::/48', powerdns },
      { prefix: '198.51.100.0/24', rfc2136 },
      { prefix: '192.0.2.64/26', zone: '64-127.2.0.192.in-addr.arpa', rfc2136 },
      { prefix: '2001:db8:114::/48', rfc2136 },
    ],
  };
  const file = join(folder, 'reverse-dns.json');
  await writeFile(file, JSON.stringify(content));
  return file;
}

test('PowerDNS by its API and BIND by signed updates get, replace and lose the names of IPv4, IPv6 and zones of RFC 2317', {
  skip,
}, async () => {
  const { zones } = await readReverseDns(await writeFileOf(), false);
  for (const [address, port, record] of [
    ['203.0.113.10', ports.pdns, '10.113.0.203.in-addr.arpa'],
    ['2001:db8:113::1f', ports.pdns, null],
    ['198.51.100.7', ports.bind, '7.100.51.198.in-addr.arpa'],
    ['192.0.2.70', ports.bind, '70.64-127.2.0.192.in-addr.arpa'],
    ['2001:db8:114::1f', ports.bind, null],
  ] as const) {
    const zone = findZone(zones, address)!;
    const name = recordOf(zone.name, address);
    if (record !== null) assert.equal(name, record);
    for (const target of ['a.example.net', 'b.example.net', 'b.example.net', null, null]) {
      await zone.write(name, target);
      // PowerDNS remembers its answers for seconds; a name that was not asked for yet is answered as it is.
      if (port === ports.bind)
        assert.deepEqual(await namesOf(port, name), target === null ? [] : [target], address);
    }
    const fresh = recordOf(zone.name, address.replace(/.$/, '9'));
    await zone.write(fresh, 'c.example.net');
    assert.deepEqual(await namesOf(port, fresh), ['c.example.net'], address);
    if (port === ports.pdns) {
      const rrsets = await fetch(
        `http://127.0.0.1:${ports.web}/api/v1/servers/localhost/zones/${zone.name}.`,
        {
          headers: { 'x-api-key': apiKey },
        },
      );
      const told = (await rrsets.json()) as { rrsets: { name: string; type: string }[] };
      assert.deepEqual(
        told.rrsets.filter(({ type }) => type === 'PTR').map((one) => one.name),
        [`${fresh}.`],
      );
    }
  }
});

test('a wrong key, a zone that the server does not have and a server that is away are worth another attempt, without the secret in a word', {
  skip,
}, async () => {
  const cases = [
    [{ secret: randomBytes(32).toString('base64') }, /NOTAUTH/],
    [{ key: 'other-key' }, /NOTAUTH/],
    [{ port: await freePort() }, /did not answer/],
  ] as const;
  for (const [more, why] of cases) {
    const { zones } = await readReverseDns(await writeFileOf(more), false);
    await assert.rejects(
      findZone(zones, '198.51.100.7')!.write('8.100.51.198.in-addr.arpa', 'x.example.net'),
      (error) => {
        assert.ok(hasCode(error, 'reverse_dns.failed'));
        assert.match(String(error), why);
        assert.ok(!String(error).includes(secret));
        return true;
      },
    );
  }
  assert.deepEqual(await namesOf(ports.bind, '8.100.51.198.in-addr.arpa'), []);
  const { zones } = await readReverseDns(await writeFileOf(), false);
  const outside = { ...findZone(zones, '203.0.113.1')! };
  await assert.rejects(outside.write('1.2.3.4.in-addr.arpa', 'x.example.net'), /answered 422/);
});

test('a file that does not serve is refused in one sentence, without a secret', { skip }, async () => {
  const file = join(folder, 'wrong.json');
  for (const [content, why] of [
    [
      '{"zones": [{"prefix": "10.0.0.0/9", "powerdns": {"url": "http://127.0.0.1", "api_key": "k"}}]}',
      /needs "zone"/,
    ],
    ['{"zones": [{"prefix": "203.0.113.1/24"}]}', /no network/],
    ['{"zones": [{"prefix": "203.0.113.0/24"}]}', /needs either/],
    [
      '{"zones": [{"prefix": "203.0.113.0/24", "powerdns": {"url": "http://192.0.2.1", "api_key": "k"}}]}',
      /not encrypted/,
    ],
    [`{"zones": "${secret}`, /not JSON/],
    ['{"zone": []}', /zones/],
  ] as const) {
    await writeFile(file, content);
    await assert.rejects(readReverseDns(file, false), (error) => {
      assert.ok(hasCode(error, 'reverse_dns.file'));
      assert.match(String(error), why);
      assert.ok(!String(error).includes(secret));
      return true;
    });
  }
});

test('a customer’s name is confirmed by the resolver of the file, and the servers answer with it', {
  skip,
}, async () => {
  await using world = await createWorld({ reverseDns: await readReverseDns(await writeFileOf(), false) });
  const { tenant } = await world.createCustomer('Real');
  const { serverId, allocations } = await world.deploy(tenant, 'real');
  for (const { address } of allocations) {
    const of = { tenantId: tenant.id, serverId, address };
    await assert.rejects(world.reverseDns.setName(systemActor, of, { name: 'ns.example.net' }), (error) =>
      hasCode(error, 'reverse_dns.not_confirmed'),
    );
    await world.reverseDns.setName(systemActor, of, { name: 'web-1.example.net' });
    await world.jobs.drain();
    assert.equal((await world.reverseDns.findName(systemActor, of))?.status, 'applied', address);
    assert.deepEqual(await resolverOf(ports.pdns).reverse(address), ['web-1.example.net']);
  }
});
