/**
 * Orders that want the same thing at the same moment: an address of a private network, its last free address, the last
 * room, the last public address, or a network that is deleted meanwhile. They are paid by card or by credit, from three
 * pools of connections as three processes would have them; some cards are declined, and some callers die at one of
 * four points. Then dead charges are reconciled, and the gateway's books are held against ours.
 *
 * What is refused was never charged; what is charged is made or given back; nothing stays held; what is left over can be
 * sold.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import fc from 'fast-check';
import { systemActor } from '#operations/accounts/index.ts';
import type { CreateServerInput } from '#operations/ordering/index.ts';
import { createTestGateway, type PaymentGateway, type Payments } from '#operations/payments/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { type Contest, type ContestRound, contests, openRound } from './contest-round.ts';
import { createOrdering, type Ordering, type OrderingOptions } from './ordering.ts';

export const contestFaults = [
  'nothing is held',
  'nothing is held, and the money is kept',
  'an unpaid order keeps what it holds',
  'two orders choose a node at once',
] as const;
export type ContestFault = (typeof contestFaults)[number];

const deathPoints = ['order committed', 'charge sent', 'money taken', 'outcome committed'] as const;
type DeathPoint = (typeof deathPoints)[number];

const month = 40_000;
const pools = 3;
const refusals = new Set([
  'networks.ip_in_use',
  'networks.limit',
  'networks.not_found',
  'servers.capacity',
  'orders.payment_failed',
]);

interface Plan {
  contest: Contest;
  isByCard: boolean;
  isDeclined: boolean;
  /** Orders at once. */
  orders: number;
  /** How many of them there is enough for. */
  enough: number;
  /** Where each process dies over the first charge that it takes; null: it lives. */
  deaths: (DeathPoint | null)[];
}

const plans = fc.record({
  contest: fc.constantFrom(...contests),
  isByCard: fc.boolean(),
  isDeclined: fc.nat(9).map((n) => n === 0),
  orders: fc.integer({ min: 2, max: 6 }),
  enough: fc.integer({ min: 1, max: 2 }),
  deaths: fc.array(fc.option(fc.constantFrom(...deathPoints), { freq: 4 }), {
    minLength: pools,
    maxLength: pools,
  }),
});

export interface ContestProofResult {
  rounds: number;
  deaths: number;
  made: number;
  refused: number;
  faults: string[];
}

export async function proveContests(options: {
  n: number;
  seed: number;
  fault?: ContestFault;
  report?: (line: string) => void;
}): Promise<ContestProofResult> {
  await using world = await createWorld();
  const processes = Array.from({ length: pools }, () => startProcess(world, options.fault));
  const judge = startProcess(world, options.fault);
  const result: ContestProofResult = { rounds: 0, deaths: 0, made: 0, refused: 0, faults: [] };
  try {
    for (const plan of fc.sample(plans, { numRuns: options.n, seed: options.seed })) {
      const round = await openRound(world, { ...plan, number: result.rounds });
      const told = await play(plan, round, processes);
      await settle(judge.ordering);
      const fault = await compare(world, plan, round, told, judge.ordering);
      result.rounds += 1;
      result.deaths += told.filter((one) => one === 'died').length;
      result.made += told.filter((one) => one === '201').length;
      result.refused += told.filter((one) => refusals.has(one)).length;
      if (fault !== null)
        result.faults.push(`round ${result.rounds}: ${fault} ${JSON.stringify({ plan, told })}`);
      if (result.rounds % 200 === 0) options.report?.(`${result.rounds} rounds, ${result.made} made`);
      // One fault is enough of a planted bug.
      if (fault !== null && options.fault !== undefined) break;
      await round.clear();
    }
  } finally {
    for (const { ordering } of [...processes, judge]) await ordering[Symbol.asyncDispose]();
  }
  return result;
}

interface Process {
  ordering: Ordering;
  /** Orders; `died` when the process ended before it answered. */
  order(input: CreateServerInput): Promise<string>;
  /** Where it dies, once. */
  deathAt: DeathPoint | null;
}

function startProcess(world: World, fault: ContestFault | undefined): Process {
  const db = () => process.ordering.db;
  const usual = createTestGateway({ db });
  /** How the caller of the order under way learns of the death of its process. */
  const callers = new AsyncLocalStorage<() => void>();
  /** At the point where the process dies it stops for good, and its caller hears nothing. */
  const pass = async (point: DeathPoint) => {
    if (process.deathAt !== point) return;
    process.deathAt = null;
    callers.getStore()?.();
    await new Promise(() => {});
  };
  const gateway: PaymentGateway = {
    ...usual,
    async prepare(charge) {
      await pass('order committed');
      return usual.prepare(charge);
    },
    async take(key, reference) {
      await pass('charge sent');
      const state = await usual.take(key, reference);
      await pass('money taken');
      return state;
    },
  };
  const process: Process = {
    deathAt: null,
    ordering: createOrdering(world.database.url, {
      gateway,
      abandonSeconds: 0,
      connections: 4,
      plantPayments: (payments): Payments => ({
        ...payments,
        async takeCharge(charge, whenSettled) {
          const outcome = await payments.takeCharge(charge, whenSettled);
          await pass('outcome committed');
          return outcome;
        },
        ...(fault === 'nothing is held, and the money is kept'
          ? { refundOrderCharge: async () => false }
          : {}),
      }),
      ...plantOf(fault),
    }),
    async order(input) {
      const { promise: dead, resolve } = Promise.withResolvers<string>();
      const ordering = () => process.ordering.ordering.createServer(systemActor, input);
      const answer = callers
        .run(() => resolve('died'), ordering)
        .then(
          () => '201',
          (error) => String(error.code ?? error),
        );
      return Promise.race([answer, dead]);
    },
  };
  if (fault === 'two orders choose a node at once') takeNodeLockAway(process.ordering);
  return process;
}

function plantOf(fault: ContestFault | undefined): Pick<OrderingOptions, 'plantWork'> {
  if (fault === 'an unpaid order keeps what it holds')
    return { plantWork: (work) => ({ ...work, release: async () => {} }) };
  if (!fault?.startsWith('nothing is held')) return {};
  return {
    // As it was once: what is needed is looked for, let go, and looked for again when the card has been charged.
    plantWork: (work) => ({
      ...work,
      async hold(tx, order) {
        const held = await work.hold(tx, order);
        await work.release(tx, held);
        return held;
      },
      queue: async (tx, order) => work.queue(tx, { ...order, held: await work.hold(tx, order) }),
    }),
  };
}

function takeNodeLockAway(ordering: Ordering): void {
  ordering.pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    client.query = ((...given: unknown[]) => {
      const [text, ...rest] = given;
      const isLock =
        typeof text === 'string' && /from nodes where cluster_id = \$1 order by id for update/.test(text);
      return query(isLock ? text.replace(' for update', '') : text, ...rest);
    }) as typeof client.query;
  });
}

async function play(plan: Plan, round: ContestRound, processes: readonly Process[]): Promise<string[]> {
  for (const [index, process] of processes.entries())
    process.deathAt = plan.isByCard ? plan.deaths[index]! : null;
  const orders = Array.from({ length: plan.orders }, (_, index) =>
    processes[index % processes.length]!.order(round.inputs[index % round.inputs.length]!),
  );
  const told = await Promise.all([...orders, round.disturb()]);
  for (const process of processes) process.deathAt = null;
  return told.slice(0, orders.length);
}

/** What the processes that live on do within minutes. */
async function settle(judge: Ordering): Promise<void> {
  await judge.payments.reconcile();
  const loop = loopOf(judge.ordering, 'operations.orders');
  await loop.runOnce();
  await loop.stop();
}

async function compare(
  world: World,
  plan: Plan,
  round: ContestRound,
  told: readonly string[],
  judge: Ordering,
): Promise<string | null> {
  const { rows } = await world.database.pool.query<{
    servers: number;
    kept: number;
    given: number;
    open: number;
    balance: number;
    holds: number;
  }>(
    `select (select count(*) from servers where tenant_id = any($1::bigint[])) as servers,
       (select count(*) from charges c join test_gateway_charges g on g.charge_key = c.charge_key
         where c.tenant_id = any($1::bigint[]) and g.state = 'succeeded') as kept,
       (select count(*) from charges where tenant_id = any($1::bigint[]) and state = 'refunded') as given,
       (select count(*) from charges where tenant_id = any($1::bigint[]) and state in ('intended', 'prepared', 'unconfirmed')) as open,
       (select sum(balance_quanta)::bigint from credit_balances where tenant_id = any($1::bigint[])) as balance,
       (select count(*) from address_holds) + (select count(*) from network_holds)
         + (select count(*) from node_reservations r where r.released_at is null
            and not exists (select 1 from servers s where s.id = r.server_id)) as holds`,
    [round.tenantIds],
  );
  const { servers, kept, given, open, balance, holds } = rows[0]!;
  const strange = told.find((one) => one !== '201' && one !== 'died' && !refusals.has(one));
  if (strange !== undefined) return `answered ${strange}`;
  const deaths = told.filter((one) => one === 'died').length;
  const made = told.filter((one) => one === '201').length;
  if (open > 0) return 'a charge is open';
  if (made > servers || servers > made + deaths) return `${made} told, ${deaths} died, ${servers} servers`;
  if (servers > round.enough) return `${servers} servers where there is enough for ${round.enough}`;
  // A second order of an account whose first one was paid by card finds its credit.
  if (kept > servers) return `${kept} charges kept for ${servers} servers`;
  if (given > deaths)
    return `${given} charges given back, ${deaths} processes died: the others need not have been taken`;
  if (balance !== round.balance * round.tenantIds.length + kept * month) return `credit of ${balance}`;
  if (holds > 0) return `${holds} things are still held`;
  if (deaths > 0 || (plan.isByCard && plan.isDeclined) || round.isDisturbed) return null;
  if (servers !== Math.min(round.enough, plan.orders)) return `${servers} servers of ${round.enough}`;
  return sellRest(world, round, judge, servers);
}

/** The next order can buy what was left over, and no more. */
async function sellRest(
  world: World,
  round: ContestRound,
  judge: Ordering,
  servers: number,
): Promise<string | null> {
  await world.database.pool.query(
    'update credit_balances set balance_quanta = 1 where tenant_id = any($1::bigint[])',
    [round.tenantIds],
  );
  for (let left = round.enough - servers; left >= 0; left -= 1) {
    const code = await judge.ordering.createServer(systemActor, round.inputs[0]!).then(
      () => null,
      (error) => String(error.code),
    );
    if ((code === null) !== left > 0) return `with ${left} left over an order ends with ${code ?? '201'}`;
  }
  return null;
}
