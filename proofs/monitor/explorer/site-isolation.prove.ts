/**
 * What is told of a site's traffic does not depend on what another site has: each query is asked twice, by a read token of the site or on
 * the console's pages of the site, and between the two all traffic of the other grows and is rolled up. Both answers have to be the
 * same and hold no name, address or account of the other that was not typed. Both sites have one private address, one MAC
 * and one name of a server in common.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { networkFile } from '#monitor/peers/testing/network-file.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { type MonitorServer, startMonitorServer, type Visitor } from '#monitor/testing/server.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import { createRandom, type Random } from '../../operations/customer-api/random.ts';
import { type AskedQuery, randomSiteQuery, type SiteValues } from './site-queries.ts';

export const name = 'site-isolation';

const minutes = 25;
/** Queries between two changes of the other's traffic. */
const batch = 60;
const lanes = 4;
/** A token may ask 120 times in a minute. */
const askedByToken = 100;
/** Runs in one of which a planted bug has to be found. */
const plantedSeeds = [7, 8, 9];
/** The peers of each site are in a country and an AS of its own. */
const peerNetworks = {
  '203.0.113.96/28': { autonomous_system_number: 64_500, country: { iso_code: 'DE' } },
  '203.0.113.192/27': { autonomous_system_number: 64_501, country: { iso_code: 'FR' } },
};

interface Options {
  n: number;
  seed: number;
  report: (line: string) => void;
}

interface Stage {
  server: MonitorServer;
  sites: readonly [Site, Site];
  visitor: Visitor;
}

interface Site {
  id: number;
  /** Stands in every name of it alone. */
  mark: string;
  values: SiteValues;
  /** What no answer about another site may hold. */
  secrets: readonly string[];
  token: Promise<string>;
  asked: number;
  grow(): Promise<void>;
}

const ofAllSites = (text: string) =>
  text
    .replaceAll(/\b(\w+\.)?site_id = \$\d+/g, '(true or $&)')
    .replaceAll(/strongest_host_minutes\((\$\d+), /g, 'strongest_host_minutes(3 - $1::bigint, ');
const only = (mark: RegExp) => (text: string) => (mark.test(text) ? ofAllSites(text) : text);

/** Statements without their filters of site. */
const bugs: readonly [what: string, rewrite: (text: string) => string][] = [
  [
    'sums of counters',
    (text) => (/by_raw/.test(text) && /strongest_host_minutes/.test(text) ? ofAllSites(text) : text),
  ],
  [
    'sums of applications',
    (text) => (/by_raw/.test(text) && /application_facts/.test(text) ? ofAllSites(text) : text),
  ],
  [
    'sums of connections',
    (text) => (/by_raw/.test(text) && /endpoint_pairs/.test(text) ? ofAllSites(text) : text),
  ],
  ['minutes that were observed', only(/count\(distinct .*minute|capture_minutes m/)],
  ['servers and accounts', only(/with owned as/)],
  ['sensors', only(/from sensors where site_id/)],
  ['devices', only(/from devices d left join device_names/)],
  ['names of applications', only(/from application_names/)],
];

export async function prove(options: Options) {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'svc-site-isolation-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const file = join(folder, 'networks.mmdb');
  await writeFile(file, networkFile(peerNetworks));
  const server = stack.use(await startMonitorServer({ SVC_MONITOR_NETWORK_FILE: file }));
  const sites = [
    await createSite(server, server.siteId, 'alpha-of-one-site', 1),
    await createSite(
      server,
      (await server.monitor.sites.create(systemActor, 'omega-of-the-other')).id,
      'omega-of-the-other',
      2,
    ),
  ] as const;
  const stage: Stage = { server, sites, visitor: await server.signIn('viewer') };
  const result = await run(stage, options);
  let caught = 0;
  for (const [what, rewrite] of bugs) {
    using planted = plantSql(rewrite);
    let failures = 0;
    for (const seed of plantedSeeds)
      if (failures === 0) ({ failures } = await run(stage, { n: batch, seed, report: () => {} }));
    if (failures > 0 && planted.changed > 0) caught += 1;
    else options.report(`not noticed: ${what} of all sites, in ${planted.changed} statements`);
  }
  return {
    claim: `queries of a site's traffic by any dimension and filter tell nothing of another site, by read token and on the console; ${result.answered} of the answers had traffic`,
    tried: options.n,
    failures: result.failures,
    plantedBugsCaught: `${caught} of ${bugs.length}`,
    answered: result.answered,
  };
}

async function run(stage: Stage, { n, seed, report }: Options) {
  const random = createRandom(seed);
  let [failures, answered] = [0, 0];
  const range = { from: testMinute, to: testMinute + minutes * 60 };
  for (let done = 0; done < n; ) {
    const count = Math.min(batch, n - done);
    const [own, other] = random.below(2) === 0 ? stage.sites : [stage.sites[1], stage.sites[0]];
    const queries = Array.from({ length: count }, () =>
      randomSiteQuery(random, own.values, other.values, range),
    );
    const before = await askAll(stage, own, queries);
    await other.grow();
    await stage.server.monitor.facts.rollUp(rolled(random));
    const after = await askAll(stage, own, queries);
    for (const [i, query] of queries.entries()) {
      if (/[1-9]\d{3}/.test(before[i]!.text)) answered += 1;
      const fault = faultOf(query, before[i]!, after[i]!, other);
      if (fault === null) continue;
      failures += 1;
      report(`${own.mark} ${query.way} ${query.text}: ${fault}`);
    }
    done += count;
    if (done % (batch * 10) === 0) report(`${done} of ${n} queries, ${failures} failed`);
  }
  return { failures, answered };
}

const rolled = (random: Random) => (['none', 'settled', 'all'] as const)[random.below(3)]!;

interface Answer {
  status: number;
  text: string;
}

async function askAll(stage: Stage, own: Site, queries: readonly AskedQuery[]): Promise<Answer[]> {
  const answers: Answer[] = new Array(queries.length);
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < queries.length; i = next++) answers[i] = await ask(stage, own, queries[i]!);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return answers;
}

async function ask({ server, visitor }: Stage, own: Site, { way, text }: AskedQuery): Promise<Answer> {
  if (way === 'chart' || way === 'table' || way === 'complete') {
    const path = { chart: 'explore.json', table: 'explore', complete: 'explore/complete' }[way];
    return visitor.get(`/sites/${own.id}/${path}?${text}`);
  }
  if (own.asked % askedByToken === 0) {
    const input = { name: `${own.asked}`, days: '1' };
    own.token = server.monitor.readTokens.create(systemActor, own.id, input).then(({ token }) => token);
  }
  own.asked += 1;
  const path = way === 'dimensions' ? 'dimensions' : 'query';
  const headers = { authorization: `Bearer ${await own.token}` };
  const answer = await fetch(`${server.url}/api/v1/${path}?${text}`, { headers });
  return { status: answer.status, text: await answer.text() };
}

/** What facts were read as is no secret and changes with the roll-up. */
const comparable = (text: string) => text.replace(/"grains":\[[^\]]*\]/, '');

/** What is wrong with two answers to one query; null: nothing. */
function faultOf({ typed }: AskedQuery, before: Answer, after: Answer, other: Site): string | null {
  if (before.status !== 200 || after.status !== 200)
    return `status ${before.status} and ${after.status}: ${before.text.slice(0, 200)}`;
  for (const { text } of [before, after])
    for (const word of other.secrets)
      if (text.includes(word) && !typed.includes(word))
        return `the answer has ${word}, which is another site's`;
  return comparable(before.text) === comparable(after.text)
    ? null
    : "the answer depends on another site's traffic";
}

/** Sixteen digits, which no sum or time of an answer has. */
const accountOf = (site: number, vm: number) => 4_717_171_717_171_710 + site * 1_000 + vm;

const shared = { address: '10.0.0.9', mac: '02:00:00:00:00:99' };

/** Two nodes that see two servers and a private address, with every direction. */
async function createSite(server: MonitorServer, id: number, mark: string, number: number): Promise<Site> {
  const { monitor, database } = server;
  const rows = (text: string, values: unknown[]) => database.pool.query(text, values);
  const address = (n: number) => `192.0.2.${number * 100 + n}`;
  const peer = (n: number) => `203.0.113.${number * 100 + n}`;
  const mac = (n: number) => `02:00:00:00:0${number}:0${n}`;
  const names = ['web', 'mail'].map((kind) => `${kind}.${mark}.example`);
  await monitor.sites.mapCluster(systemActor, number, id);
  for (const [vm, serverName] of [`${mark}-1`, 'shared-name'].entries()) {
    await rows(
      `insert into inventory_vms (cluster_id, vm_id, name, state, updated_at) values ($1, $2, $3, 'running', now())`,
      [number, vm, serverName],
    );
    await rows(
      `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
       values ($1, $2, $3, $4, $5, 'x', true)`,
      [number * 10 + vm, accountOf(number, vm), vm, number, address(vm)],
    );
  }
  for (const n of [0, 1])
    await rows(
      `insert into application_names (site_id, name, first_seen_at, last_seen_at) values ($1, $2, now(), now())`,
      [id, names[n]],
    );
  const spools = await Promise.all([0, 1].map((n) => enrol(server, id, `hv-${mark}-${n}`)));
  let scale = 1;
  const send = async (at: number) => {
    const bytes = (n: number) => (1000 + 37 * at + 331 * n) * scale * number;
    for (const [n, spool] of spools.entries()) {
      const local = address(n);
      const usage = [
        usageRow({ client: local, server: peer(n), name: names[n]!, serverBytes: bytes(n), clientBytes: 40 }),
        usageRow({
          client: peer(n),
          server: local,
          name: 'SSH',
          direction: 'inbound',
          serverPort: 22,
          clientBytes: bytes(3),
        }),
        usageRow({
          client: shared.address,
          server: peer(9),
          name: names[1]!,
          serverBytes: bytes(5),
          clientBytes: 50,
        }),
      ];
      const hosts = [
        host(local, bytes(n) + bytes(3), 400, `br0|${mac(n)}`),
        host(shared.address, bytes(5), 50, `br0|${shared.mac}`),
      ];
      const minute = testMinute + at * 60;
      await spool([
        captureMinute({ minute, hosts, usage }),
        captureMinute({ minute, hosts, usage, capture: 'br0', role: 'bridge' }),
      ]);
    }
  };
  for (let at = 0; at < minutes; at += 1) await send(at);
  await monitor.inbox.drain();
  return {
    ...{ id, mark, token: Promise.resolve(''), asked: 0 },
    values: {
      server: [`${mark}-1`, 'shared-name'],
      customer: [0, 1].map((vm) => String(accountOf(number, vm))),
      address: [address(0), address(1), shared.address, `${shared.address}%br0`, '192.0.2.0/24'],
      device: [mac(0), shared.mac, `br0|${mac(1)}`],
      application: [...names, 'SSH'],
      peer: [peer(0), peer(1), peer(9), '203.0.113.0/24'],
      country: ['DE', 'FR'],
      as: ['AS64500', '64501'],
      port: ['443', '22', 'none'],
      transport: ['tcp', 'udp'],
      direction: ['outbound', 'inbound', 'internal'],
      sensor: [0, 1].map((n) => `hv-${mark}-${n}`),
      scope: ['uplink', 'bridge'],
    },
    secrets: [
      mark,
      ...[0, 1].map(address),
      ...[0, 1, 9].map(peer),
      mac(0),
      mac(1),
      String(accountOf(number, 0)),
    ],
    async grow() {
      scale += 1;
      for (let at = 0; at < minutes; at += 8) await send(at);
      await monitor.inbox.drain();
    },
  };
}

async function enrol({ monitor }: MonitorServer, siteId: number, hostName: string) {
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const made = await monitor.sensors.enrol({
    token,
    host_name: hostName,
    node: hostName,
    sensor_version: '0.1.0',
  });
  const sensor = (await monitor.sensors.authenticate(made!.credential))!;
  const spool = createSpool();
  return async (of: Parameters<typeof spool.upload>[0]) => {
    await monitor.inbox.receive(sensor, compressUpload(encodeUpload(spool.upload(of))), 'zstd');
  };
}
