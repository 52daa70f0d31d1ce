/**
 * What a customer is told of traffic does not depend on what another customer has: each query is asked twice, and between the two
 * all of the other's traffic, applications and names of servers change. Both answers have to be the same to the byte, hold no
 * value of the other, and be a 404 where they name the other's server (NET-2.4.4).
 */
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { plantSql, withoutOwner } from '#operations/testing/planted-sql.ts';
import { sumMinutes } from '#operations/testing/sum-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';
import { createRandom } from '../customer-api/random.ts';
import { type Named, randomQuery } from './queries.ts';

export const name = 'explorer-queries';

const hours = 3;
const minuteMs = 60_000;
/** Queries between two changes of the other's traffic. */
const batch = 30;
/** These notice every planted bug. */
const forBugs = { n: 60, seed: 10 };
/** Requests at a time. */
const lanes = 4;

interface Customer extends Named {
  tenantId: number;
  cookie: string;
}

interface Options {
  /** At least those that notice bugs, which come first. */
  n: number;
  seed: number;
  report: (line: string) => void;
  /** Whether the first failure ends it. */
  endsOnFailure?: boolean;
}

/** Statements without their filters of owner: of all customers, and of the servers and addresses that were asked for. */
const bugs: readonly [what: string, rewrite: (text: string) => string][] = [
  ['totals of a server', ofStatement('sum(inbound_bytes) filter')],
  ['steps of a server', ofStatement('avg(inbound_bps)')],
  ['applications of a server', ofStatement('having bool_or(seen.outbound_bytes')],
  ['sums of servers', ofStatement('sums as (')],
  ['lines of servers', (text) => (text.includes('both_ways as') ? text : ofStatement(') slots')(text))],
  ['sums and lines of servers', ofStatement('both_ways as')],
  ['percentiles of servers', ofStatement('percentile_disc(0.95)')],
  ['sums of applications', ofStatement('ranked as (')],
  ['lines of applications', ofStatement('sent as materialized (')],
  ['lists and lookups of servers', (text) => (/\bfrom "?servers"?\b/.test(text) ? withoutOwner(text) : text)],
  ['names of servers', (text) => (text.includes('"isDestroyed"') ? withoutOwner(text) : text)],
];

function ofStatement(part: string): (text: string) => string {
  return (text) => (text.includes(part) ? withoutScope(text) : text);
}

function withoutScope(text: string): string {
  return withoutOwner(text).replaceAll(/\bserver_id = any\(\$\d+::bigint\[\]\)/g, '(true or $&)');
}

export async function prove(options: Options) {
  await using world = await createWorld();
  const token = await world.createToken(['protect_telemetry_ingest']);
  const endMs = worldMinuteMs;
  const customers = [
    await createCustomer(world, token, 'alpha', endMs),
    await createCustomer(world, token, 'omega', endMs),
  ] as const;
  await world.database.pool.query('vacuum analyze');
  const { report } = options;
  const first = await run(world, customers, endMs, { ...forBugs, report });
  const others = await run(world, customers, endMs, { ...options, n: options.n - forBugs.n });
  const answered = first.answered + others.answered;
  let caught = 0;
  for (const [what, rewrite] of bugs) {
    using planted = plantSql(rewrite);
    const found = await run(world, customers, endMs, { ...forBugs, report: () => {}, endsOnFailure: true });
    if (found.failures > 0 && planted.changed > 0) caught += 1;
    else report(`not noticed: ${what} without an owner`);
  }
  return {
    claim: `queries of traffic by any dimension and filter tell nothing of another customer; ${answered} of the answers had traffic`,
    tried: options.n,
    failures: first.failures + others.failures,
    plantedBugsCaught: `${caught} of ${bugs.length}`,
    answered,
  };
}

async function run(
  world: World,
  customers: readonly [Customer, Customer],
  endMs: number,
  { n, seed, report, endsOnFailure = false }: Options,
): Promise<{ failures: number; answered: number }> {
  const random = createRandom(seed);
  let [failures, answered] = [0, 0];
  for (let done = 0; done < n && !(endsOnFailure && failures > 0); ) {
    const count = Math.min(batch, n - done);
    const [own, other] = random.below(2) === 0 ? customers : [customers[1], customers[0]];
    const paths = Array.from({ length: count }, () => randomQuery(random, own, other, endMs, hours));
    const before = await askAll(world, own, paths);
    await changeTraffic(world, other);
    const after = await askAll(world, own, paths);
    for (const [i, path] of paths.entries()) {
      const fault = faultOf(path, before[i]!, after[i]!, other);
      if (before[i]!.hasTraffic) answered += 1;
      if (fault === null) continue;
      failures += 1;
      report(`${own.mark} ${path}: ${fault}`);
    }
    done += count;
    if (done % 1200 === 0) report(`${done} of ${n} queries, ${failures} failed`);
  }
  return { failures, answered };
}

interface Answer {
  status: number;
  text: string;
  hasTraffic: boolean;
}

async function askAll(world: World, { cookie }: Customer, paths: readonly string[]): Promise<Answer[]> {
  const answers: Answer[] = new Array(paths.length);
  let next = 0;
  const lane = async () => {
    for (let i = next++; i < paths.length; i = next++) {
      const headers = { cookie, accept: 'application/json, text/csv' };
      const answer = await fetch(`${world.url}${paths[i]}`, { headers, redirect: 'manual' });
      const text = await answer.text();
      answers[i] = {
        status: answer.status,
        text,
        hasTraffic: answer.status === 200 && /[1-9]\d{3}/.test(text),
      };
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return answers;
}

/** What is wrong with two answers to one query; null: nothing. */
function faultOf(path: string, before: Answer, after: Answer, other: Customer): string | null {
  const id = Number(/\/servers\/(\d+)\//.exec(path)?.[1]);
  if (other.serverIds.includes(id))
    return [before, after].every(({ status }) => status === 404)
      ? null
      : `a server of another customer answers with ${before.status} and ${after.status}`;
  if (before.status !== 200 || after.status !== 200) return `status ${before.status} and ${after.status}`;
  for (const text of [before, after].map((answer) => withoutLinks(answer.text)))
    for (const word of [other.mark, ...other.addresses])
      if (text.includes(word)) return `the answer has ${word}, which is another customer's`;
  if (before.text !== after.text) return "the answer depends on another customer's traffic";
  return null;
}

/** Links of an answer hold the filters as they were asked for, whosever values they name. */
const withoutLinks = (text: string) => text.replaceAll(/"href":"[^"]*"/g, '');

/** Two servers with three hours of minutes, other bytes in each. */
async function createCustomer(world: World, token: string, mark: string, endMs: number): Promise<Customer> {
  const { email, tenant } = await world.createCustomer(mark);
  const applications = ['web', 'mail', 'names'].map((kind) => `${kind}.${mark}.example`);
  const serverIds: number[] = [];
  const addresses: string[] = [];
  // One name that both have: of two servers of a name each customer means the own one.
  const serverNames = [`${mark}-1`, 'shared-name'];
  for (const serverName of serverNames) {
    const { serverId } = await world.deploy(tenant, serverName);
    await world.backdate(serverId, '5 days');
    serverIds.push(serverId);
    const allocations = await world.addresses.listAllocationsOfServers([serverId]);
    for (const [place, allocation] of allocations.entries()) {
      addresses.push(allocation.address);
      const bytes = (i: number) => 10_000 + 977 * i + 331 * serverId + 57 * place;
      const used = (i: number) =>
        applications.map((application, k) => ({
          ...{ name: application, transport: k === 2 ? 'udp' : 'tcp', server_port: k === 2 ? 53 : 443 },
          ...{ inbound_bytes: 100 * (k + 1) + i, outbound_bytes: 50 * (k + 1) + i },
        }));
      await deliverMinutes(
        world,
        token,
        allocation,
        Array.from({ length: hours * 60 }, (_, i) => [
          endMs - (i + 1) * minuteMs,
          { in: bytes(i), out: bytes(i + 3), pps: bytes(i) / 600, coverage: 1, applications: used(i) },
        ]),
      );
    }
  }
  return {
    ...{ tenantId: tenant.id, cookie: await world.signIn(email), mark },
    ...{ serverIds, serverNames, addresses, applications },
  };
}

/** Everything that could shine through: bytes, packets, rates, names of applications (each is lengthened or shortened), and the days of traffic. */
async function changeTraffic(world: World, { tenantId, mark }: Customer): Promise<void> {
  const { pool, db } = world.database;
  await pool.query(
    `update protect_minutes set inbound_bytes = (inbound_bytes * 7 + 12345) % 900001, outbound_bytes = (outbound_bytes * 5 + 777) % 800011,
       inbound_bps = ((inbound_bytes * 7 + 12345) % 900001) * 8 / 60.0, outbound_bps = ((outbound_bytes * 5 + 777) % 800011) * 8 / 60.0, pps = (round(pps * 60)::bigint * 3 + 4321) % 100003 / 60.0,
       applications = case when applications::text like '%new.' || $2 || '%'
         then replace(applications::text, 'new.' || $2, $2)::jsonb else replace(applications::text, $2, 'new.' || $2)::jsonb end
     where allocation_id in (select allocation_id from protect_series where tenant_id = $1)`,
    [tenantId, mark],
  );
  await sumMinutes(db);
  await pool.query(
    `update servers set name = case when name like $2 || '-1' then $2 || '-renamed' when name like $2 || '-renamed' then $2 || '-1' else name end
     where tenant_id = $1`,
    [tenantId, mark],
  );
}
