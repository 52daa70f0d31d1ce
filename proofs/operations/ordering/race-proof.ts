/**
 * Many orders of one account at once, over nine pools of connections as nine processes would have them, while in half
 * of the rounds the last credit is spent: the hourly cap is met exactly, and no order is paid at $0.00 without credit.
 *
 * A trigger notes the balance that stood when each order was made; both happen under the lock on the balance, so what it
 * notes is what was true. The same rounds with that lock taken away must fail.
 */
import fc from 'fast-check';
import { systemActor } from '#operations/accounts/index.ts';
import { appendLedgerEntry } from '#operations/billing/index.ts';
import { createTestGateway } from '#operations/payments/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createOrdering, type Ordering } from './ordering.ts';

const pools = 9;
const cap = 6;
const ordersAtOnce = 14;

export interface RaceProofResult {
  rounds: number;
  faults: string[];
}

export async function proveRaces(options: {
  n: number;
  seed: number;
  isUnlocked?: boolean;
}): Promise<RaceProofResult> {
  await using world = await createWorld();
  const { pool } = world.database;
  await pool.query(`
    update address_pools set prefix = '203.0.0.0/16', first_address = '203.0.0.10', last_address = '203.0.255.250'
      where family(first_address) = 4;
    create table order_audit (order_id bigint, balance bigint);
    create function note_order() returns trigger language plpgsql as $$ begin
      insert into order_audit values (new.id,
        (select balance_quanta from credit_balances where tenant_id = new.tenant_id));
      return new; end $$;
    create trigger note_order after insert on server_orders for each row execute function note_order()`);
  const orderings = Array.from({ length: pools }, () => {
    const db: () => Ordering['db'] = () => ordering.db;
    const ordering: Ordering = createOrdering(world.database.url, {
      gateway: createTestGateway({ db }),
      deploysPerHour: cap,
      connections: 3,
    });
    if (options.isUnlocked) takeLockAway(ordering);
    return ordering;
  });
  const { tenant: first } = await world.createCustomer('Races');
  const faults: string[] = [];
  const random = fc.sample(fc.record({ drains: fc.boolean(), after: fc.nat(ordersAtOnce) }), {
    numRuns: options.n,
    seed: options.seed,
  });
  for (const [round, { drains, after }] of random.entries()) {
    const tenant = await world.accounts.createTenant(systemActor, {
      organizationId: first.organizationId,
      name: `round ${round}`,
    });
    const profile = { legalName: 'x', email: 'x@x.test', country: 'DE' };
    await world.accounts.setBillingProfile(systemActor, tenant.id, profile);
    await world.setBalance(tenant, 1);
    const drain = () =>
      world.database.db.transaction().execute((tx) =>
        appendLedgerEntry(tx, {
          tenantId: tenant.id,
          amountQuanta: -1,
          description: 'spent',
          metadata: { source: 'server_hours', reference: 'last credit' },
        }),
      );
    const wishes = Array.from({ length: ordersAtOnce }, (_, index) => {
      const order = orderings[index % pools]!.ordering.createServer(systemActor, {
        tenantId: tenant.id,
        plan: 'small',
        image: 'debian-12',
      });
      const said = order.then(
        () => '201',
        (error) => String(error.code),
      );
      return index === after && drains ? Promise.all([said, drain()]).then(([first]) => first) : said;
    });
    const answers = await Promise.all(wishes);
    const fault = await judge(world.database.pool, tenant.id, answers, drains && after < ordersAtOnce);
    if (fault !== null) faults.push(`round ${round}: ${fault}`);
    if (options.isUnlocked && fault !== null) break;
  }
  await Promise.all(orderings.map((ordering) => ordering[Symbol.asyncDispose]()));
  return { rounds: options.n, faults };
}

async function judge(
  pool: Ordering['pool'],
  tenantId: number,
  answers: readonly string[],
  isDrained: boolean,
): Promise<string | null> {
  const { rows } = await pool.query<{ orders: number; broke: number; due: number; servers: number }>(
    `select count(*)::int as orders, (count(*) filter (where a.balance <= 0))::int as broke,
       coalesce(sum(o.due_quanta), 0)::int as due,
       (select count(*)::int from servers s where s.tenant_id = $1) as servers
     from server_orders o join order_audit a on a.order_id = o.id where o.tenant_id = $1`,
    [tenantId],
  );
  const { orders, broke, due, servers } = rows[0]!;
  const made = answers.filter((answer) => answer === '201').length;
  const allowed = ['201', 'orders.deploy_rate', ...(isDrained ? ['orders.not_eligible'] : [])];
  const strange = answers.find((answer) => !allowed.includes(answer));
  if (strange) return `answered ${strange}`;
  if (orders > cap) return `${orders} orders in an hour`;
  if (!isDrained && orders !== cap) return `${orders} orders where ${cap} are allowed`;
  if (broke > 0) return `${broke} orders were paid at $0.00 without credit`;
  if (due !== 0) return 'credit paid more than $0.00';
  if (made !== orders || servers !== orders) return `${made} told, ${orders} orders, ${servers} servers`;
  return null;
}

/** The planted fault: the balance is looked at, then acted upon, by many at once. */
function takeLockAway(ordering: Ordering): void {
  ordering.pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => unknown;
    client.query = ((...given: unknown[]) => {
      const [text, ...rest] = given;
      const isLock =
        typeof text === 'string' && /from credit_balances where tenant_id = \$1 for update/.test(text);
      return query(isLock ? text.replace(' for update', '') : text, ...rest);
    }) as typeof client.query;
  });
}
