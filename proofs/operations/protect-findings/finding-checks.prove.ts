/**
 * Checks of an address that arrive in any order, more than once, several in one request and two requests at once: after every
 * delivery the newest check of those that were delivered is held as a whole, with its evidence, and nothing of another (NET-2.6.5).
 */
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import {
  createFindingMonitor,
  type FindingMonitor,
  findingOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import { createRandom, type Random } from '../customer-api/random.ts';

export const name = 'finding-checks';

/** Orders at a time, each of an address of its own. */
const lanesMax = 4;
const vacuumEvery = 100;
const checksMax = 6;
const deliveriesMax = 6;

type Report = (line: string) => void;

interface Lane {
  allocation: Allocation;
  subject: { serverId: number; tenantId: number };
}

const bugs: readonly ((text: string) => string)[] = [
  // An older check takes the place of a newer one.
  (text) => text.replace("< checked_at then 'older'", "< checked_at and false then 'older'"),
  // Findings of an earlier check stay.
  (text) =>
    text.replace(
      'delete from findings f where allocation_id',
      'delete from findings f where false and allocation_id',
    ),
  // The evidence of an earlier check stays.
  (text) =>
    text.replace(
      'do update set scan_id = excluded.scan_id, observed_at = excluded.observed_at',
      'do update set port = excluded.port',
    ),
];

export async function prove({ n, seed, report }: { n: number; seed: number; report: Report }) {
  await using world = await createWorld();
  const monitor = await createFindingMonitor(world);
  const lanes: Lane[] = [];
  for (let lane = 0; lane < Math.min(lanesMax, Math.ceil(n / 20)); lane += 1)
    lanes.push(await createLane(world, lane));
  const failures = await playAll(world, monitor, lanes, { n, seed, report });
  let caught = 0;
  for (const bug of bugs) {
    using planted = plantSql(bug);
    const found = await playAll(world, monitor, lanes, { n: 40, seed: 7, report: () => {} });
    if (found > 0 && planted.changed > 0) caught += 1;
  }
  return {
    claim: 'checks in any order, repeated and at once: the newest one is held as a whole',
    tried: n,
    failures,
    plantedBugsCaught: `${caught} of ${bugs.length}`,
  };
}

async function createLane(world: World, lane: number): Promise<Lane> {
  const { tenant } = await world.createCustomer(`Checks ${lane}`);
  const { serverId } = await world.deploy(tenant, 'checks');
  await world.backdate(serverId, '30 days');
  const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
  return { allocation: allocation!, subject: { serverId, tenantId: tenant.id } };
}

/** Returns how many orders ended with a fault. */
async function playAll(
  world: World,
  monitor: FindingMonitor,
  lanes: readonly Lane[],
  { n, seed, report }: { n: number; seed: number; report: Report },
): Promise<number> {
  let [next, failures] = [0, 0];
  const play = async (lane: Lane, index: number) => {
    for (; next < n; ) {
      const order = next;
      next += 1;
      if (index === 0 && order % vacuumEvery === 0)
        await world.database.pool.query(
          'vacuum analyze finding_projections, finding_services, findings, known_findings',
        );
      const fault = await playOne(world, monitor, lane, createRandom(seed * 1_000_000 + order));
      if (fault === null) continue;
      failures += 1;
      report(`order ${order}: ${fault}`);
    }
  };
  await Promise.all(lanes.map(play));
  return failures;
}

/** One set of checks, delivered in one order; what was wrong, or null. */
async function playOne(
  world: World,
  monitor: FindingMonitor,
  { allocation, subject }: Lane,
  random: Random,
): Promise<string | null> {
  const { serverId } = subject;
  await world.database.pool.query(
    'with told as (delete from known_findings where server_id = $1) delete from finding_projections where server_id = $1',
    [serverId],
  );
  const checks = Array.from({ length: 2 + random.below(checksMax - 1) }, (_, age) =>
    makeCheck(allocation, random, age),
  );
  let newest: number | null = null;
  for (let delivery = 0; delivery < deliveriesMax; delivery += 1) {
    const requests = Array.from({ length: 1 + random.below(2) }, () =>
      Array.from({ length: 1 + random.below(3) }, () => random.below(checks.length)),
    );
    const outcomes = await Promise.all(
      requests.map((request) => monitor.deliver(...request.map((which) => checks[which]!))),
    );
    // Ages: the lowest is the newest.
    newest = Math.min(newest ?? checks.length, ...requests.flat());
    const odd = outcomes.flat().find((outcome) => !['accepted', 'unchanged', 'superseded'].includes(outcome));
    if (odd) return `a delivery was ${odd}`;
    const held = await world.protectFindings.list(systemActor, subject, { limit: 1000 });
    const got = held
      .map(
        (row) =>
          `${row.port} ${row.version} ${row.scanId} ${row.observedAt.toISOString()} ${row.cveId} ${row.score}`,
      )
      .sort();
    const wanted = checks[newest]!.services.flatMap(({ port, version, scan_id, observed_at, findings }) =>
      findings.map(({ cve_id, score }) => `${port} ${version} ${scan_id} ${observed_at} ${cve_id} ${score}`),
    ).sort();
    if (got.join('\n') !== wanted.join('\n'))
      return `after ${JSON.stringify(requests)}, of check ${newest}:\n${got.join('\n')}\n-- and not --\n${wanted.join('\n')}`;
  }
  return null;
}

/** A check of one to three ports with some of four CVEs; its evidence may be that of any scan. */
function makeCheck(allocation: Allocation, random: Random, age: number) {
  const at = (seconds: number) => new Date(worldNowMs() - seconds * 1000).toISOString();
  const services = [22, 80, 443]
    .filter(() => random.below(3) > 0)
    .map((port) =>
      projectedService({
        port,
        version: `9.${random.below(3)}p1`,
        observed_at: at(100 + random.below(6 * 86_400)),
        findings: [1, 2, 3, 4]
          .filter(() => random.below(2) > 0)
          .map((cve) => findingOf(`CVE-2024-000${cve}`, { score: random.below(100) / 10 })),
      }),
    );
  return projectionOf(allocation, { checked_at: at(10 + age), services });
}
