/**
 * A process that assesses services is killed with SIGKILL at a random statement, and so are the two that go on with its work, each
 * when the lease of the one before has run out. In between records change, scans find other services, and operators ignore
 * findings. When one gets to the end, findings, counts of servers and of records, and alerts are those of the evidence and the records,
 * each once; and no check of a server or of a version ever was older than one before.
 */

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { seededRandom } from '#common/random/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import {
  type AssessWorld,
  addressOf,
  nginx,
  openssh,
  startAssessWorld,
} from '#monitor/vulnerabilities/testing/assess-world.ts';
import { type NvdRecord, records } from '#monitor/vulnerabilities/testing/records/index.ts';

export const name = 'assessment-kills';

const servers = 6;
const livesMax = 3;
const worker = fileURLToPath(new URL('./killed-assessor.ts', import.meta.url));
const versions = {
  openssh: ['8.2', '9.3', '9.6', '9.8', '9.6p1 Ubuntu 3ubuntu13.5'],
  nginx: ['1.14.0', '1.18.0', '1.20.0', '1.25.3'],
};

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: Options) {
  await using world = await startAssessWorld(servers);
  const random = seededRandom(seed);
  const history = { statements: 40, kills: 0 };
  let failures = 0;
  await world.copyRecords();
  for (let round = 0; round < n; round += 1) {
    const faults = await killOnce(world, { round, random, history });
    if (faults.length === 0) continue;
    failures += 1;
    report(`round ${round}: ${faults.slice(0, 3).join('; ')}`);
  }
  report(`${history.kills} processes were killed at a statement`);
  return {
    claim:
      'a process that is killed while it assesses leaves to the next one all that is to be done: nothing is lost, doubled or older',
    tried: n,
    failures,
  };
}

interface Round {
  round: number;
  random: () => number;
  history: { statements: number; kills: number };
}

async function killOnce(world: AssessWorld, { round, random, history }: Round): Promise<string[]> {
  await keepTold(world);
  await change(world, round, random);
  const faults: string[] = [];
  let before = await readChecks(world);
  for (let life = 1; life <= livesMax + 1; life += 1) {
    const killedAt = life > livesMax ? 0 : 1 + Math.floor(random() * history.statements);
    const end = await live(world, killedAt);
    const after = await readChecks(world);
    for (const [what, checked] of before)
      if (after.has(what) && after.get(what)! < checked) faults.push(`${what} has an older check`);
    before = after;
    if (end.isKilled) history.kills += 1;
    else {
      history.statements = Math.max(20, end.sent);
      if (killedAt === 0) break;
    }
    await world.pool.query("update leases set expires_at = svc_now() where name = 'assess_vulnerabilities'");
  }
  return [...faults, ...(await judge(world))];
}

/** Scans of some servers, other records of some products, and an ignore. */
async function change(world: AssessWorld, round: number, random: () => number): Promise<void> {
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)]!;
  // Only what was seen lately is scanned.
  for (const table of ['inventory_vms', 'inventory_interfaces'])
    await world.pool.query(`update ${table} set last_seen_at = svc_now()`);
  await world.pool.query('update host_inventories set observed_at = svc_now()');
  for (let serverId = 1; serverId <= servers; serverId += 1)
    if (round === 0 || random() < 0.5)
      await world.scan(addressOf(serverId), [openssh(pick(versions.openssh)), nginx(pick(versions.nginx))], {
        endedAgo: 1,
      });
  if (round === 0 || random() < 0.6) {
    const kept = records.filter(() => random() < 0.8);
    await world.copyRecords(
      kept.map((record) => retell(record, round)),
      [pick(['openssh', 'nginx'])],
    );
  }
  const [finding] = await world.rows<{
    vm: number;
    address: string;
    port: number;
    fingerprint: string;
    cve: string;
  }>(
    `select v.vm_id as vm, host(v.address) as address, v.port, v.fingerprint, f.cve from vulnerability_services v
     join vulnerability_findings f on f.software_id = v.software_id where v.reason is null order by md5(concat_ws(' ', v.vm_id, v.port, f.cve, $1::int)) limit 1`,
    [round],
  );
  if (finding)
    await world.vulnerabilities
      .ignore(systemActor, {
        ...{
          clusterId: 7,
          serverId: finding.vm,
          address: finding.address,
          transport: 'tcp',
          port: finding.port,
        },
        ...{ fingerprint: finding.fingerprint, cve: finding.cve, reason: 'killed', untilMs: null },
      })
      .catch(() => {});
}

const retell = (record: NvdRecord, round: number): NvdRecord => ({
  cve: { ...record.cve, descriptions: [{ lang: 'en', value: `As of round ${round}.` }] },
});

function live(world: AssessWorld, killedAt: number): Promise<{ isKilled: boolean; sent: number }> {
  const child = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', worker, world.database.url, String(killedAt)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) =>
      code === 0 || signal === 'SIGKILL'
        ? resolve({ isKilled: signal === 'SIGKILL', sent: Number(said) })
        : reject(new Error(`the assessor ended with code ${code}`)),
    );
  });
}

/** The time of the newest check of each server, and the state of the records of each version. */
async function readChecks(world: AssessWorld): Promise<Map<string, number>> {
  const rows = await world.rows<{ what: string; checked: number }>(
    `select 'server ' || vm_id as what, extract(epoch from checked_at)::float8 as checked from vulnerability_servers
     where checked_at is not null
     union all select 'version ' || product || ' ' || version, revision::float8 from vulnerability_software`,
  );
  return new Map(rows.map(({ what, checked }) => [what, checked]));
}

/** What is stored against what the evidence and the records say, worked out anew. */
async function judge(world: AssessWorld): Promise<string[]> {
  const faults: string[] = [];
  for (let serverId = 1; serverId <= servers; serverId += 1) {
    const evidence = await world.monitor.scans.listEvidence([{ clusterId: 7, serverId }]);
    const expected = await world.vulnerabilities.assess(evidence);
    const stored = (await world.vulnerabilities.readServer(7, serverId))?.services ?? [];
    const text = (services: readonly { port: number; reason: string | null; cves: readonly string[] }[]) =>
      services
        .map(({ port, reason, cves }) => `${port} ${reason} ${[...cves].sort().join(' ')}`)
        .sort()
        .join('\n');
    const wanted = text(
      evidence.map(({ port }, i) => {
        const { reason, findings, upstreamFindings } = expected[i]!;
        return {
          port,
          reason,
          cves: [...findings, ...upstreamFindings].map((one) => `${one.cve} ${one.summary}`),
        };
      }),
    );
    const found = text(
      stored.map(({ port, reason, findings }) => ({
        ...{ port, reason, cves: findings.map(({ finding }) => `${finding.cve} ${finding.summary}`) },
      })),
    );
    if (wanted !== found) faults.push(`server ${serverId} has other findings than its evidence`);
  }
  for (const [what, statement] of Object.entries(mustBeEmpty))
    for (const row of await world.rows(statement)) faults.push(`${what}: ${JSON.stringify(row)}`);
  return faults;
}

/** What operators were told of before a round: in the round each service may tell what is new of its own, once. */
async function keepTold({ pool }: AssessWorld): Promise<void> {
  await pool.query(`drop table if exists told_before, told_events;
    create table told_before as table vulnerability_noted;
    create table told_events as select max(id) as newest from events`);
}

/** Rows are faults. */
const mustBeEmpty: Readonly<Record<string, string>> = {
  'counts of a server': `
    select s.vm_id, s.critical + s.high + s.medium + s.low + s.unrated as stored, coalesce(c.active, 0) as counted, s.ignored
    from vulnerability_servers s left join (
      select v.vm_id, count(*) filter (where i.id is null)::int as active, count(i.id)::int as ignored from vulnerability_services v
      join vulnerability_findings f on f.software_id = v.software_id
      left join vulnerability_ignores i on (i.cluster_id, i.vm_id, i.address, i.transport, i.port, i.fingerprint, i.cve)
        = (v.cluster_id, v.vm_id, v.address, v.transport, v.port, v.fingerprint, f.cve) and i.ended_at is null
      where v.reason is null group by 1) c on c.vm_id = s.vm_id
    where s.critical + s.high + s.medium + s.low + s.unrated <> coalesce(c.active, 0) or s.ignored <> coalesce(c.ignored, 0)`,
  'uses of a version': `
    select software_id, u.services, c.services as counted from vulnerability_uses u full join (
      select software_id, count(*)::int as services from vulnerability_services
      where reason is null and software_id is not null group by 1) c using (software_id)
    where u.services is distinct from c.services`,
  'a severe finding that was not told': `
    select v.vm_id, v.port, w.severe_seq, n.seq from vulnerability_services v
    join vulnerability_software w on w.id = v.software_id and w.severe > 0
    left join vulnerability_noted n on (n.cluster_id, n.vm_id, n.transport, n.port, n.fingerprint)
      = (v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint)
    where v.reason is null and n.seq is distinct from w.severe_seq and coalesce(n.seq, 0) < w.severe_seq`,
  'a server that still waits': `
    select vm_id from vulnerability_servers where due_at <= svc_now() or evidence <> assessed`,
  'a finding that was told twice': `
    select told.vm, told.cve, told.times, fresh.services from (
      select details ->> 'vm_id' as vm, cve, count(*)::int as times
      from events, jsonb_array_elements_text(details -> 'cves') cve
      where kind = 'potential_vulnerabilities_found' and id > (select coalesce(max(newest), 0) from told_events)
      group by 1, 2) told
    cross join lateral (
      select count(*)::int as services from vulnerability_noted n
      join vulnerability_severe x on x.software_id = n.software_id and x.cve = told.cve
      left join told_before b using (cluster_id, vm_id, transport, port, fingerprint)
      where n.vm_id::text = told.vm and x.seq > coalesce(b.seq, 0)) fresh
    where told.times > fresh.services`,
};
