import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import {
  createFindingMonitor,
  findingOf,
  fingerprintOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';
import type { FindingListQuery, ListedFinding } from '#operations/views/finding-store.ts';

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
/** The rows of a table, as text. */
const rowsOf = (page: string, list = 'potential-vulnerabilities') =>
  [
    ...(page.split(`data-list="${list}"`)[1]?.split('</table>')[0] ?? '').matchAll(
      /<tr[^>]*> ?<th scope="row".*?<\/tr>/g,
    ),
  ].map(([row]) => textOf(row).trim());

async function createServer(name: string, age = '1 day') {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, `${name.toLowerCase().replaceAll(' ', '-')}-1`);
  await world.backdate(serverId, age);
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
  assert.match(rows[0]!, /low 2\.0 alpha-1 .*Alpha tcp\/80 nginx 1\.14\.0 .*known exploited/);
  assert.deepEqual(
    rowsOf(page, 'services-with-potential-vulnerabilities').map((row) => row.replace(/ [\d.]+$/, '')),
    [
      'nginx 1.14.0 tcp/80 alpha-1 Alpha 2 ● low 2.0 ■ known exploited',
      'OpenSSH 9.6p1 tcp/22 alpha-1 Alpha 1 ■ high 8.1',
      'OpenSSH 9.6p1 tcp/22 beta-1 Beta 1 ■ high 8.1',
    ],
    'by service: what there is to upgrade, at which server',
  );
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

/** What `totalAll` must say, from the list of all findings. */
function recount(all: readonly ListedFinding[], { severities, cveId, customer, serverId }: Filter) {
  const listed = all.filter(
    (row) =>
      (severities?.includes(row.severity ?? 'unrated') ?? true) &&
      (cveId === undefined || row.cveId === cveId) &&
      (serverId === undefined || row.serverId === serverId) &&
      (customer === undefined || row.tenantName.toLowerCase().includes(customer)),
  );
  const active = listed.filter(({ state }) => state === 'active');
  const of = (name: string | null) => active.filter(({ severity }) => severity === name).length;
  const counts = {
    ...{ active: active.length, ignored: listed.length - active.length },
    ...{ critical: of('critical'), high: of('high'), medium: of('medium'), low: of('low'), none: of('none') },
    ...{ unrated: of(null), knownExploited: active.filter((row) => row.isKnownExploited).length },
    servers: new Set(active.map((row) => row.serverId)).size,
  };
  return { listed, counts };
}

type Filter = Omit<FindingListQuery, 'state' | 'after' | 'limit'>;

/** Every filter lists and counts what is among all findings. */
async function checkCounts(when: string, serverIds: readonly number[]): Promise<void> {
  const filters: Filter[] = [
    {},
    ...(['critical', 'high', 'unrated'] as const).map((severity) => ({ severities: [severity] })),
    { severities: ['critical', 'unrated'] },
    { customer: 'counted' },
    { customer: 'no such name' },
    { cveId: 'CVE-2020-0001' },
    { cveId: 'CVE-2024-6387', customer: 'counted' },
    ...serverIds.map((serverId) => ({ serverId })),
  ];
  const all = await world.protectFindings.listAll(systemActor, { limit: 10_000 });
  for (const filter of filters) {
    const { listed, counts } = recount(all, filter);
    const name = `${when}: ${JSON.stringify(filter)}`;
    const {
      unable: _,
      checkedAt: __,
      databaseAt: ___,
      ...totals
    } = await world.protectFindings.totalAll(systemActor, filter);
    assert.deepEqual(totals, counts, name);
    for (const state of [undefined, 'active', 'ignored'] as const) {
      const rows = await world.protectFindings.listAll(systemActor, { ...filter, state, limit: 10_000 });
      assert.deepEqual(
        rows,
        listed.filter((row) => state === undefined || row.state === state),
        `${name} ${state}`,
      );
    }
  }
  const counts = await world.protectFindings.countOf(systemActor, serverIds);
  for (const serverId of serverIds) {
    const { active } = recount(all, { serverId }).counts;
    assert.equal(counts.get(serverId)?.active ?? 0, active, `${when}: server ${serverId}`);
  }
}

test('counts are those of the list at every moment: of ignores, expired evidence, and addresses that were released', async () => {
  const [kept, expiring, released] = [
    await createServer('Counted', '30 days'),
    await createServer('Counted too', '30 days'),
    await createServer('Uncounted', '30 days'),
  ];
  const ids = [kept, expiring, released].map(({ serverId }) => serverId);
  const loop = loopOf(world.protectFindings, 'operations-finding-counts');
  const check = (when: string) => checkCounts(when, ids);
  const findings = [
    critical('CVE-2024-6387'),
    findingOf('CVE-2020-0001', { severity: null, score: null }),
    findingOf('CVE-2020-0002', { known_exploited: true }),
  ];
  const upstream = projectedService({ port: 80, assessment: 'unable', reason: 'distribution_package' });
  const old = projectedService({ port: 81, observed_at: secondsAgo(7 * 86_400 - 3600), findings });
  const services = [projectedService({ findings }), upstream];
  await deliver(
    projectionOf(kept.first, { services }),
    projectionOf(expiring.first, { services: [...services, old] }),
    projectionOf(released.first, { services }),
  );
  await check('delivered');
  const inMinutes = (minutes: number) => new Date(world.clock.nowMs() + minutes * 60_000);
  for (const [{ actor, serverId }, cveId, until] of [
    [kept, 'CVE-2020-0001', null],
    [kept, 'CVE-2020-0002', inMinutes(30)],
    [expiring, 'CVE-2024-6387', inMinutes(90)],
    [released, 'CVE-2020-0002', null],
  ] as const)
    await world.protectFindings.ignore(actor, serverId, {
      ...{ address: null, transport: 'tcp', port: 22, cveId, until },
      ...{ fingerprint: fingerprintOf('OpenSSH 9.6p1'), reason: 'counted' },
    });
  await check('ignored');
  try {
    for (const later of ['31 minutes', '61 minutes', '91 minutes']) {
      await moveWorldClock(world.database, later);
      await check(`after ${later}`);
      await loop.runOnce();
      const { rows } = await world.database.pool.query(
        'select 1 from finding_counts where valid_until <= svc_now()',
      );
      assert.deepEqual(rows, [], 'all are counted again');
      await check(`counted after ${later}`);
    }
    await loopOf(world.protectFindings, 'operations-finding-retention').runOnce();
    await check('expired evidence is deleted');
  } finally {
    await moveWorldClock(world.database, '0');
  }
  await loop.runOnce();
  await world.protectFindings.endIgnore(kept.actor, kept.serverId, {
    ...{ address: null, transport: 'tcp', port: 22, cveId: 'CVE-2020-0001' },
    fingerprint: fingerprintOf('OpenSSH 9.6p1'),
  });
  await check('no ignore any more');
  await deliver(projectionOf(kept.first, { checkedSecondsAgo: 1, services: [projectedService()] }));
  await check('fewer findings');
  await world.servers.destroyServer(systemActor, null, released.serverId);
  await world.jobs.drain();
  await check('released');
});

test('deliveries and ignores of one address at a time leave the counts of what was stored', async () => {
  const { first, actor, serverId } = await createServer('Busy');
  const many = Array.from({ length: 12 }, (_, n) => findingOf(`CVE-2021-${1000 + n}`));
  await deliver(
    projectionOf(first, { checkedSecondsAgo: 60, services: [projectedService({ findings: many })] }),
  );
  const key = {
    address: null,
    transport: 'tcp',
    port: 22,
    fingerprint: fingerprintOf('OpenSSH 9.6p1'),
  } as const;
  for (let round = 0; round < 10; round += 1)
    await Promise.all([
      deliver(
        projectionOf(first, {
          checkedSecondsAgo: 50 - round,
          services: [projectedService({ findings: many.slice(round % 3) })],
        }),
      ),
      ...many.map(({ cve_id: cveId }, n) =>
        (n + round) % 2 === 0
          ? world.protectFindings
              .ignore(actor, serverId, { ...key, cveId, reason: 'busy', until: null })
              .catch((error) => assert.equal(error.code, 'protect_findings.no_finding'))
          : world.protectFindings.endIgnore(actor, serverId, { ...key, cveId }),
      ),
    ]);
  await checkCounts('after all', [serverId]);
});
