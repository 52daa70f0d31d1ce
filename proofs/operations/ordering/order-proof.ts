/**
 * Orders servers through a gateway that lets one down in ten ways, from processes that are killed at nine points, while
 * reconciliation runs; then holds the gateway's own books against ours. one order in seven is made by a process of its own
 * and killed; the others are cut off inside this one.
 *
 * Every order must end bought (one capture kept, one month of credit, one server and one job) or not bought (nothing
 * kept, no credit, no server), at every crash point; the caller's answer must match the outcome.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import Stripe from 'stripe';
import { systemClock } from '#common/clock/index.ts';
import { createStripeGateway } from '#operations/payments/gateways/stripe.ts';
import { type Behaviour, behaviours, type GatewayIntent } from '#operations/payments/testing/fake-stripe.ts';
import { type FakeStripe, startFakeStripe } from '#operations/payments/testing/start-fake-stripe.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { type KillPoint, killPoints, orderAndCut } from './crash-injection.ts';
import type { OrderAnswer, OrderRequest } from './order-worker.ts';
import { createOrdering, type Ordering } from './ordering.ts';

const month = 40_000;
/** Orders that are on their way at once in the proving process. */
const lanes = 12;

interface Case {
  behaviour: Behaviour;
  killAt: KillPoint | null;
}

/** Behaviours and kill points, each pair in turn. */
export function crossCases(n: number): Case[] {
  return Array.from({ length: n }, (_, index) => ({
    behaviour: behaviours[index % behaviours.length]!,
    killAt: killPoints[Math.floor(index / behaviours.length) % killPoints.length]!,
  }));
}

export interface OrderProofResult {
  tried: number;
  kills: number;
  /** Cut off inside the proving process. */
  cuts: number;
  bought: number;
  refunded: number;
  faults: string[];
}

export async function proveOrders(
  cases: readonly Case[],
  options: { paysTwice?: boolean; processEvery: number; report: (line: string) => void },
): Promise<OrderProofResult> {
  await using stripe = await startFakeStripe();
  await using world = await createWorld();
  const gateway = createStripeGateway(Stripe, {
    ...{ secretKey: 'sk_test_x', apiUrl: stripe.url, callbackSecret: null, timeoutMs: 3_000 },
  });
  await using judge = createOrdering(world.database.url, { gateway, abandonSeconds: 0 });
  const tenantIds = await seedTenants(world, cases.length);
  const paysTwice = options.paysTwice ?? false;
  const answers = new Map<number, string>();
  let kills = 0;
  let cuts = 0;
  let done = 0;
  let isOver = false;
  // Takes over only what is a second old, so that it meets orders whose process is alive as well.
  await using running = createOrdering(world.database.url, { gateway, abandonSeconds: 1, connections: 3 });
  const reconciling = (async () => {
    while (!isOver) {
      await running.payments.reconcile();
      await systemClock.wait(300);
    }
  })();
  const note = (tenantId: number, answer: string | null) => {
    if (answer !== null) answers.set(tenantId, answer);
    done += 1;
    if (done % 100 === 0) options.report(`${done} orders, ${kills} processes killed, ${cuts} cut off`);
  };
  const numbered = cases.map((one, index) => ({ ...one, tenantId: tenantIds[index]!, index }));
  const isProcess = (index: number) => index % options.processEvery === 0;
  const cutOff = numbered.filter(({ index }) => !isProcess(index));
  /** Orders in this process, a few at a time. */
  const inProcess = async () => {
    for (let one = cutOff.shift(); one; one = cutOff.shift()) {
      const { tenantId, behaviour, killAt } = one;
      await stripe.plan({ tenantId, behaviour });
      const request = { tenantId, killAt, paysTwice };
      const answer = await orderAndCut(world.database.url, stripe.url, request);
      if (answer === null) cuts += 1;
      note(tenantId, answer);
    }
  };
  const inProcesses = async () => {
    let worker = startWorker(world, stripe, paysTwice);
    for (const { tenantId, behaviour, killAt, index } of numbered) {
      if (!isProcess(index)) continue;
      const kill = atGateway(killAt, (await worker).child.pid!);
      await stripe.plan({ tenantId, behaviour, ...(kill ? { kill } : {}) });
      const answer = await (await worker).order({ tenantId, killAt });
      note(tenantId, answer);
      if (answer !== null) continue;
      kills += 1;
      worker = startWorker(world, stripe, paysTwice);
    }
    (await worker).child.kill('SIGKILL');
  };
  try {
    await Promise.all([inProcesses(), ...Array.from({ length: lanes }, inProcess)]);
  } finally {
    isOver = true;
    await reconciling;
  }
  await settle(world, judge, stripe);
  const result = await compare(world.database.pool, await stripe.books(), tenantIds, answers, cases);
  return { tried: cases.length, kills, cuts, ...result };
}

function atGateway(killAt: KillPoint | null, pid: number) {
  if (killAt === 'charge sent, not executed') return { pid, when: 'before' as const };
  return killAt === 'charge executed, not answered' ? { pid, when: 'after' as const } : null;
}

interface Worker {
  child: ChildProcess;
  /** What the caller was told; null when the process died over it. */
  order(request: OrderRequest): Promise<string | null>;
}

async function startWorker(world: World, stripe: FakeStripe, paysTwice: boolean): Promise<Worker> {
  const script = fileURLToPath(new URL('./order-worker.ts', import.meta.url));
  const given = [script, world.database.url, stripe.url, ...(paysTwice ? ['pays twice'] : [])];
  const child = spawn(process.execPath, given, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines: Interface = createInterface({ input: child.stdout! });
  await once(lines, 'line');
  const exited = once(child, 'exit');
  return {
    child,
    async order(request) {
      const line = once(lines, 'line');
      child.stdin!.write(`${JSON.stringify(request)}\n`);
      const first = await Promise.race([line, exited.then(() => null)]);
      return first === null ? null : (JSON.parse(String(first[0])) as OrderAnswer).answer;
    },
  };
}

/** One tenant for each order: no credit, a card, a billing profile. */
async function seedTenants(world: World, n: number): Promise<number[]> {
  const { tenant } = await world.createCustomer('Order proof');
  const { pool } = world.database;
  await pool.query(
    "update address_pools set last_address = '203.0.255.250', prefix = '203.0.0.0/16', first_address = '203.0.0.10' where family(first_address) = 4",
  );
  const { rows } = await pool.query<{ id: number }>(
    `insert into tenants (organization_id, name, slug)
     select $1, 'order ' || n, 'order-' || n from generate_series(1, $2::int) as n returning id`,
    [tenant.organizationId, n],
  );
  const ids = rows.map((row) => row.id);
  await pool.query(
    `insert into billing_profiles (tenant_id, legal_name, email, country)
     select id, 'x', 'x@x.test', 'DE' from unnest($1::bigint[]) as id`,
    [ids],
  );
  await pool.query(
    `insert into gateway_customers (tenant_id, gateway, reference)
     select id, 'stripe', 'cus_' || id from unnest($1::bigint[]) as id`,
    [ids],
  );
  await pool.query(
    `insert into saved_cards (tenant_id, gateway, reference, brand, last4, expires_month, expires_year, is_default)
     select id, 'stripe', 'pm_' || id, 'visa', '4242', 12, 2099, true from unnest($1::bigint[]) as id`,
    [ids],
  );
  return ids;
}

/** All processes run again: two reconcilers at once, before and after the late charges succeed, and the completer. */
async function settle(world: World, judge: Ordering, stripe: FakeStripe): Promise<void> {
  const { pool } = world.database;
  for (const isLate of [false, true]) {
    if (isLate) await stripe.finishLate();
    await pool.query("update charges set next_attempt_at = svc_now() where state = 'unconfirmed'");
    await Promise.all([judge.payments.reconcile(), judge.payments.reconcile()]);
    const loop = loopOf(judge.ordering, 'operations.orders');
    await loop.runOnce();
    await loop.stop();
  }
}

interface Outcome {
  tenantId: number;
  orders: string[];
  charges: { key: string; state: string }[];
  balance: number;
  servers: number;
  jobs: number;
}

async function compare(
  pool: pg.Pool,
  books: readonly GatewayIntent[],
  tenantIds: readonly number[],
  answers: ReadonlyMap<number, string>,
  cases: readonly Case[],
): Promise<Omit<OrderProofResult, 'tried' | 'kills' | 'cuts'>> {
  const { rows } = await pool.query<Outcome>(
    `select t.id as "tenantId",
       (select coalesce(json_agg(state), '[]') from server_orders o where o.tenant_id = t.id) as orders,
       (select coalesce(json_agg(json_build_object('key', charge_key, 'state', state)), '[]')
         from charges c where c.tenant_id = t.id) as charges,
       coalesce((select balance_quanta from credit_balances b where b.tenant_id = t.id), 0) as balance,
       (select count(*) from servers s where s.tenant_id = t.id) as servers,
       (select count(*) from jobs j join servers s on (j.payload ->> 'server_id')::bigint = s.id
         where s.tenant_id = t.id and j.kind = 'servers.provision') as jobs
     from tenants t where t.id = any($1::bigint[]) order by t.id`,
    [tenantIds],
  );
  const byKey = Map.groupBy(books, (intent) => intent.key.replace(/-again$/, ''));
  const faults: string[] = [];
  let bought = 0;
  let refunded = 0;
  for (const [index, outcome] of rows.entries()) {
    const { behaviour, killAt } = cases[index]!;
    const intents = outcome.charges.flatMap(({ key }) => byKey.get(key) ?? []);
    const what = judgeOrder(outcome, intents, answers.get(outcome.tenantId));
    if (what !== null)
      faults.push(
        `tenant ${outcome.tenantId}, ${behaviour}, killed ${killAt}: ${what} ${JSON.stringify(outcome)}`,
      );
    if (outcome.servers > 0) bought += 1;
    if (intents.some((intent) => intent.refunds > 0)) refunded += 1;
  }
  const known = new Set(rows.flatMap((row) => row.charges.map((charge) => charge.key)));
  for (const intent of books)
    if (intent.captures > intent.refunds && !known.has(intent.key.replace(/-again$/, '')))
      faults.push(`charged but lost: ${intent.key} is known to the gateway alone`);
  return { bought, refunded, faults };
}

/** What is wrong with one order; null when nothing is. */
function judgeOrder(
  outcome: Outcome,
  intents: readonly GatewayIntent[],
  answer: string | undefined,
): string | null {
  const captures = intents.reduce((sum, intent) => sum + intent.captures, 0);
  const kept = captures - intents.reduce((sum, intent) => sum + intent.refunds, 0);
  if (captures > 1) return `captured ${captures} times`;
  if (kept !== 0 && kept !== 1) return `kept ${kept}`;
  if (intents.some((intent) => intent.captures > 0 && intent.amount !== month / 100)) return 'wrong amount';
  const open = outcome.charges.find(({ state }) => ['intended', 'prepared', 'unconfirmed'].includes(state));
  if (open) return `still ${open.state}`;
  const isBought = outcome.servers === 1 && outcome.jobs === 1;
  if (outcome.servers > 1 || outcome.servers !== outcome.jobs) return 'servers and jobs differ';
  if (isBought !== (kept === 1)) return isBought ? 'a server without payment' : 'charged, but nothing for it';
  if (outcome.balance !== kept * month) return `credit of ${outcome.balance}`;
  if (answer === '201' && !isBought) return 'the caller was told of a server';
  if (answer?.startsWith('charge_') && isBought) return 'the answer said that no order was placed';
  if (answer !== undefined && !['201', 'charge_declined', 'charge_unconfirmed'].includes(answer))
    return `the caller was told ${answer}`;
  if (outcome.orders.length > 1) return 'two orders';
  return null;
}
