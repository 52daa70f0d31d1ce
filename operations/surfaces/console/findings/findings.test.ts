import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';
import {
  createFindingMonitor,
  findingOf,
  fingerprintOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';

let world: World;
let deliver: Awaited<ReturnType<typeof createFindingMonitor>>['deliver'];
let support: string;

before(async () => {
  world = await createWorld();
  ({ deliver } = await createFindingMonitor(world));
  const email = 'support@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'support', password, staffRole: 'support' });
  support = await world.signIn(email);
});
after(() => world[Symbol.asyncDispose]());

async function get(query = '', cookie = support): Promise<string> {
  const answer = await fetch(`${world.url}/console/findings/${query}`, {
    headers: { accept: 'text/html', cookie },
  });
  return (await answer.text()).replaceAll(/\s+/g, ' ');
}

const textOf = (page: string) => page.replace(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
/** The rows of the table, as text. */
const rowsOf = (page: string) =>
  [...page.matchAll(/<tr[^>]*> ?<th scope="row".*?<\/tr>/g)].map(([row]) => textOf(row).trim());

async function createServer(name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, `${name.toLowerCase()}-1`);
  await world.backdate(serverId, '1 day');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  return { ...customer, serverId, first: first!, actor: ownerOf(customer) };
}

const critical = (cve: string) => findingOf(cve, { severity: 'critical', score: 9.8 });

test('staff see the findings of all customers, the worst first, filter them, and see what a CVE touches', async () => {
  assert.match(
    textOf(await get()),
    /No monitor has delivered an assessment yet\. .*protect_vulnerability_ingest/,
  );
  const [one, two] = [await createServer('Alpha'), await createServer('Beta')];
  const shared = 'CVE-2024-6387';
  const web = projectedService({
    ...{ port: 80, product: 'nginx', version: '1.14.0', fingerprint: fingerprintOf('nginx 1.14.0') },
    findings: [
      critical('CVE-2021-23017'),
      findingOf('CVE-2019-9511', { known_exploited: true, severity: 'low', score: 2 }),
    ],
  });
  const unknown = projectedService({
    ...{
      port: 81,
      product: null,
      version: null,
      assessment: 'unable',
      reason: 'unknown_product',
      findings: [],
    },
  });
  await deliver(
    projectionOf(one.first, { services: [projectedService(), web] }),
    projectionOf(two.first, { services: [projectedService(), unknown] }),
  );
  const page = await get();
  assert.match(
    textOf(page),
    /4 active on 2 servers, 1 known to be exploited, 1 critical, 2 high\. 1 service of all servers could not be assessed\./,
  );
  assert.match(textOf(page), /not endorsed or certified by the NVD/);
  const rows = rowsOf(page);
  assert.deepEqual(
    rows.map((row) => /^CVE-[\d-]+/.exec(row)![0]),
    ['CVE-2019-9511', 'CVE-2021-23017', shared, shared],
    rows.join('\n'),
  );
  assert.match(rows[0]!, /low 2\.0 alpha-1 .*Alpha tcp\/80 nginx 1\.14\.0 scan \d+ s ago .*known exploited/);
  for (const href of [
    `/console/servers/${one.serverId}`,
    `/console/customers/${two.tenant.id}`,
    `/console/findings/?cve=${shared}`,
  ])
    assert.ok(page.includes(`href="${href}"`), href);
  const shows = async (query: string, names: string[]) => {
    const found = rowsOf(await get(query)).map((row) => /(alpha|beta)-1/.exec(row)![1]!);
    assert.deepEqual(found.sort(), names, query);
  };
  await shows(`?cve=${shared}`, ['alpha', 'beta']);
  await shows(`?cve=%20${shared.toLowerCase()}`, ['alpha', 'beta']);
  assert.match(textOf(await get(`?cve=${shared}`)), /CVE-2024-6387: active at 2 services of 2 servers\./);
  await shows('?severity=critical', ['alpha']);
  await shows('?customer=bETA', ['beta']);
  await shows('?customer=%25', []);
  await shows(`?tenant=${two.tenant.id}`, ['beta']);
  await shows(`?server=${one.serverId}&severity=high&cve=nonsense&state=x&after=1`, ['alpha']);
  assert.match(await get('?cve=CVE-1999-0001'), /No finding matches/);
});

test('NET-2.6.1: what a customer ignores is listed apart with the reason, and is not active', async () => {
  const three = await createServer('Gamma');
  await deliver(projectionOf(three.first));
  const of = `server=${three.serverId}`;
  await world.protectFindings.ignore(three.actor, three.serverId, {
    ...{ address: three.first.address, transport: 'tcp', port: 22, cveId: 'CVE-2024-6387' },
    ...{ fingerprint: fingerprintOf('OpenSSH 9.6p1'), reason: 'mended <by> hand', until: null },
  });
  assert.deepEqual(rowsOf(await get(`?${of}&state=active`)), []);
  const [row] = rowsOf(await get(`?${of}&state=ignored`));
  assert.match(row!, /gamma-1 .*ignored by Gamma Owner: mended &lt;by&gt; hand/);
  assert.match(textOf(await get(`?${of}`)), /None active\. .*Active 0 .*Ignored 1/);
});

test('more than a page is paged without a gap', async () => {
  const many = await createServer('Many');
  const findings = Array.from({ length: 230 }, (_, at) =>
    findingOf(`CVE-2022-${1000 + at}`, { score: at % 3 === 0 ? null : 5 + (at % 2) / 10 }),
  );
  await deliver(projectionOf(many.first, { services: [projectedService({ findings })] }));
  const seen: string[] = [];
  for (let query: string | undefined = `?server=${many.serverId}`; query !== undefined; ) {
    const page = await get(query);
    seen.push(...rowsOf(page).map((row) => /^CVE-[\d-]+/.exec(row)![0]));
    query = /href="\/console\/findings\/(\?[^"]*after=[^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&');
    assert.ok(seen.length <= 230, 'a page comes again');
  }
  assert.equal(new Set(seen).size, 230);
});

test('findings of a destroyed server are gone, and a customer has no such page', async () => {
  const gone = await createServer('Gone');
  await deliver(projectionOf(gone.first));
  assert.equal(rowsOf(await get('?customer=gone')).length, 1);
  await world.servers.destroyServer(systemActor, null, gone.serverId);
  await world.jobs.drain();
  assert.equal(rowsOf(await get('?customer=gone')).length, 0);
  const answer = await fetch(`${world.url}/console/findings/`, {
    headers: { accept: 'text/html', cookie: await world.signIn(gone.email) },
  });
  assert.equal(answer.status, 404);
});

test('counts in groups are those of the list: ignored, upstream, expired and released findings are left out', async () => {
  const [kept, expiring, released] = [
    await createServer('Kept'),
    await createServer('Expiring'),
    await createServer('Released'),
  ];
  const upstream = projectedService({ port: 80, assessment: 'unable', reason: 'distribution_package' });
  const rated = projectedService({
    findings: [critical('CVE-2024-6387'), findingOf('CVE-2020-0001', { severity: null, score: null })],
  });
  await deliver(
    ...[kept, expiring, released].map(({ first }) => projectionOf(first, { services: [rated, upstream] })),
  );
  for (const { actor, serverId } of [kept, expiring, released])
    await world.protectFindings.ignore(actor, serverId, {
      ...{ address: null, transport: 'tcp', port: 22, cveId: 'CVE-2020-0001' },
      ...{ fingerprint: fingerprintOf('OpenSSH 9.6p1'), reason: 'not rated', until: null },
    });
  await world.database.pool.query(
    "update finding_services set observed_at = svc_now() - interval '8 days' where allocation_id = $1",
    [expiring.first.id],
  );
  await world.database.pool.query('update allocations set released_at = svc_now() where id = $1', [
    released.first.id,
  ]);
  for (const severities of [undefined, ['critical'], ['unrated'], ['critical', 'high']] as const) {
    const inGroups = await world.protectFindings.totalAll(systemActor, { severities });
    // A name that every customer has is a filter, so these are counted one by one.
    const oneByOne = await world.protectFindings.totalAll(systemActor, { severities, customer: '' });
    assert.deepEqual(inGroups, oneByOne, String(severities));
  }
  assert.equal((await world.protectFindings.totalAll(systemActor, { severities: ['unrated'] })).ignored, 1);
});
