/** Rounds of clicks at once from several processes on the servers of one account, and what must hold after each. */
import type { World } from '#operations/testing/create-world.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { createRandom } from '#proofs/operations/customer-api/random.ts';
import { meetAtGate } from './scan-gate.ts';
import type { ClickAnswer } from './scan-worker.ts';
import type { ScanWorkers } from './scan-workers.ts';

const servers = 4;
/** So three servers fit into the account's 100 addresses, and the fourth does not. */
const addressesOfServer = 32;

/** An older request of a server, which has ended: 30 seconds before the end of the cooldown, or a second after it. */
type Earlier = 'cooling' | 'cooled' | null;

interface Plan {
  /** Of each server. */
  earlier: readonly Earlier[];
  /** The servers that each process clicks, by their number. */
  clicks: readonly (readonly number[])[];
  /** All clicks wait for a lock, each other's or the gate's, before one of them stores anything. */
  isGated?: boolean;
}

export type ScanClicks = Awaited<ReturnType<typeof createScanClicks>>;

/** `account`: its number, for addresses and clicks that no other account has. */
export async function createScanClicks(world: World, { account, seed }: { account: number; seed: number }) {
  const random = createRandom(seed * 1_000 + account);
  const customer = await world.createCustomer('Clicks');
  const serverIds: number[] = [];
  for (let index = 0; index < servers; index += 1) {
    const { serverId, allocations } = await world.deploy(customer.tenant, `clicked-${index}`);
    serverIds.push(serverId);
    await world.database.pool.query(
      `insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
       select pool_id, cluster_id, tenant_id, server_id, '45.90.0.0'::inet + ($3::int * 50 + n), prefix_length,
         gateway, false
       from allocations, generate_series(1, $2::int) n where id = $1`,
      [allocations[0]!.id, addressesOfServer - allocations.length, account * servers + index],
    );
  }
  const actor = ownerOf(customer);

  async function begin(earlier: readonly Earlier[]): Promise<void> {
    const ages = { cooling: '9 minutes 30 seconds', cooled: '10 minutes 1 second' };
    const past = earlier.flatMap((each, index) =>
      each === null ? [] : { server_id: serverIds[index]!, age: ages[each] },
    );
    await world.database.pool.query('delete from scan_requests where tenant_id = $1', [customer.tenant.id]);
    await world.database.pool.query(
      `insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address, state, requested_at,
         finished_at)
       select 'manual', min(a.id), min(a.cluster_id), min(a.tenant_id), server_id, 'x', 'complete',
         svc_now() - age, svc_now()
       from jsonb_to_recordset($1::jsonb) past(server_id bigint, age interval) join allocations a using (server_id)
       group by server_id, age`,
      [JSON.stringify(past)],
    );
  }

  /** What went wrong, or null. */
  async function play(
    workers: ScanWorkers,
    { earlier, clicks, isGated = false }: Plan,
  ): Promise<string | null> {
    await begin(earlier);
    const click = () =>
      workers.click(
        actor,
        clicks.map((each) => each.map((index) => serverIds[index]!)),
      );
    const answers = await (isGated ? meetAtGate(world.database.url, clicks.flat().length, click) : click());
    const { rows } = await world.database.pool.query<{ serverId: number; count: number }>(
      `select server_id as "serverId", count(*)::int as count from scan_requests
       where finished_at is null and tenant_id = $1 group by server_id`,
      [customer.tenant.id],
    );
    const cooling = new Set(serverIds.filter((_, index) => earlier[index] === 'cooling'));
    return judge(answers, new Map(rows.map((row) => [Number(row.serverId), row.count])), cooling);
  }

  return {
    /** A schedule by chance. */
    playRandom: (workers: ScanWorkers): Promise<string | null> =>
      play(workers, {
        earlier: serverIds.map(() => (['cooling', 'cooled', null, null] as const)[random.below(4)]!),
        clicks: Array.from({ length: workers.processes }, () =>
          Array.from({ length: 1 + random.below(4) }, () => random.below(servers)),
        ),
      }),
    play,
  };
}

const never = Array.from({ length: servers }, () => null);
const everywhere = (index: number) => Array.from({ length: servers }, () => [index]);

/** Schedules that leave nothing to chance, played while nothing else waits for a lock. */
export const forcedPlans: Readonly<Record<string, Plan>> = {
  'one server, clicked in all processes': { earlier: never, clicks: everywhere(0), isGated: true },
  'a server for each process': { earlier: never, clicks: [[0], [1], [2], [3]], isGated: true },
  'two servers, each in two processes': { earlier: never, clicks: [[0], [1], [0], [1]], isGated: true },
  'a server in its cooldown': { earlier: ['cooling', null, null, null], clicks: everywhere(0) },
};

function judge(
  answers: readonly ClickAnswer[],
  pending: ReadonlyMap<number, number>,
  cooling: ReadonlySet<number>,
): string | null {
  const total = [...pending.values()].reduce((sum, count) => sum + count, 0);
  if (total > 100) return `${total} pending addresses`;
  const clicked = new Set(answers.map(({ serverId }) => serverId));
  const allowed = [...clicked].filter((serverId) => !cooling.has(serverId));
  const expected = Math.min(allowed.length, Math.floor(100 / addressesOfServer));
  if (pending.size !== expected) return `${pending.size} servers with requests and not ${expected}`;
  for (const serverId of clicked) {
    const outcomes = answers.filter((each) => each.serverId === serverId).map(({ outcome }) => outcome);
    const count = pending.get(serverId) ?? 0;
    if (count !== 0 && count !== addressesOfServer) return `server ${serverId} has ${count} requests`;
    const news = outcomes.filter((outcome) => outcome === 'new').length;
    if (news !== (count === 0 ? 0 : 1)) return `server ${serverId} has ${news} new sets`;
    const refusal = cooling.has(serverId) ? 'cooldown' : 'limit_exceeded';
    const others = new Set(outcomes.filter((outcome) => outcome !== 'new'));
    others.delete(count === 0 ? refusal : 'pending');
    if (others.size > 0) return `server ${serverId}: ${[...others].join(', ')}`;
  }
  return null;
}
