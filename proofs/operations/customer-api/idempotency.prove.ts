/**
 * `npm run prove -- idempotency`: creates under one Idempotency-Key, repeated, at once, with other bodies, and after
 * callers that died before, inside and after the transaction that makes the order. One order per key, one answer.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import type { Claim, Idempotency } from '#operations/idempotency/index.ts';
import { type Answer, type Call, createApiClient } from '#operations/surfaces/customer-api/testing/client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createRandom, type Random } from './random.ts';

export const name = 'idempotency';

interface Trial {
  world: World;
  call: Call;
  tenant: Tenant;
  key: string;
  random: Random;
}

const path = '/api/v2/servers';
const deaths = ['none', 'before', 'inside', 'after'] as const;

export async function prove({
  n,
  seed,
  report,
}: {
  n: number;
  seed: number;
  report: (line: string) => void;
}) {
  const faults = await tryOut(n, seed, (usual) => usual);
  for (const fault of faults.slice(0, 20)) report(`FAULT ${fault}`);
  const planted = { unbound, anyContent, notExclusive };
  let caught = 0;
  for (const [bug, plant] of Object.entries(planted)) {
    const found = await tryOut(40, seed, plant);
    if (found.length > 0) caught += 1;
    else report(`the planted bug ${bug} was not caught`);
  }
  return {
    claim: 'one Idempotency-Key makes one order, repeated at once or after a crash; one answer, one password',
    tried: n,
    failures: faults.length,
    plantedBugsCaught: `${caught} of ${Object.keys(planted).length}`,
  };
}

async function tryOut(
  n: number,
  seed: number,
  plant: (usual: Idempotency) => Idempotency,
): Promise<string[]> {
  await using world = await createWorld({ deploysPerHour: 1_000_000, idempotency: plant });
  // A short range is looked through faster than a long one, and is enough for the servers of one trial.
  await world.database.pool.query('update address_pools set last_address = first_address + 100');
  const random = createRandom(seed);
  const { tenant, owner } = await world.createCustomer('Repeats');
  const key = await world.createKey({ tenant, owner });
  const at: Trial = { world, call: createApiClient(world.url), tenant, key, random };
  const faults: string[] = [];
  for (let trial = 0; trial < n; trial += 1) {
    for (const fault of await runTrial(at, `trial-${trial}`)) faults.push(`trial ${trial}: ${fault}`);
    // Its servers are of no interest any more, and their room and addresses are needed.
    await world.database.pool.query(
      'update node_reservations set released_at = svc_now() where released_at is null',
    );
    await world.database.pool.query(
      'update allocations set released_at = svc_now() where released_at is null',
    );
  }
  return faults;
}

async function runTrial(at: Trial, name: string): Promise<string[]> {
  const faults: string[] = [];
  const body = { plan: 'small', image: 'debian-12', name };
  const send = (other = {}) =>
    at.call('POST', path, {
      key: at.key,
      body: { ...body, ...other },
      headers: { 'idempotency-key': name },
    });
  const death = deaths[at.random.below(deaths.length)]!;
  await die(at, death, name, body);
  const answers: Answer[] = [];
  for (let round = 0; round < 1 + at.random.below(3); round += 1) {
    const width = 1 + at.random.below(4);
    answers.push(...(await Promise.all(Array.from({ length: width }, () => send()))));
  }
  // A call that was told to wait is repeated, as a client does.
  for (let tries = 0; tries < 50 && !answers.some((one) => one.status === 201); tries += 1) {
    await pause(5);
    answers.push(await send());
  }
  const made = answers.filter((one) => one.status === 201);
  const told = new Set(made.map((one) => `${one.body.id} ${one.body.root_password}`));
  if (told.size !== 1) faults.push(`${death}: ${told.size} different answers`);
  for (const one of answers)
    if (one.status !== 201 && one.body.error.reason !== 'idempotency_in_progress')
      faults.push(`${death}: ${one.status} ${one.text}`);
  const other = await send({ labels: { other: 'body' } });
  if (other.body.error?.reason !== 'idempotency_key_reused') faults.push(`another body: ${other.status}`);
  const { rows } = await at.world.database.pool.query(
    "select count(*) as n from server_orders where request -> 'input' ->> 'name' = $1",
    [name],
  );
  if (rows[0].n !== 1) faults.push(`${death}: ${rows[0].n} orders`);
  return faults;
}

/** A caller that got this far and no further; what it held is free after its claim, which is told instead of waited for. */
async function die(at: Trial, death: (typeof deaths)[number], name: string, body: object): Promise<void> {
  if (death === 'none') return;
  const begun = await at.world.idempotency.begin({
    keyId: at.key.split('_')[1]!,
    method: 'POST',
    path,
    idempotencyKey: name,
    content: { body, tenant: at.tenant.id },
  });
  if (death !== 'before' && 'claim' in begun) await orderAndDie(at, begun.claim, name, death === 'inside');
  await at.world.database.pool.query(
    'update idempotency_keys set claimed_until = svc_now() where idempotency_key = $1',
    [name],
  );
}

async function orderAndDie(at: Trial, claim: Claim, name: string, isInside: boolean): Promise<void> {
  const order = { tenantId: at.tenant.id, plan: 'small', image: 'debian-12', name };
  await at.world.ordering
    .createServer(systemActor, order, {
      onOrdered: async (tx, orderId) => {
        await claim.bind(tx, { kind: 'order', id: orderId });
        if (isInside) throw new Error('killed');
      },
    })
    .catch((error: unknown) => {
      if (!isInside) throw error;
    });
}

/** Planted: the order is not bound in its transaction. */
function unbound(usual: Idempotency): Idempotency {
  return {
    ...usual,
    async begin(call) {
      const begun = await usual.begin(call);
      return 'claim' in begun ? { claim: { ...begun.claim, async bind() {} } } : begun;
    },
  };
}

/** Planted: what was sent is not compared. */
function anyContent(usual: Idempotency): Idempotency {
  return { ...usual, begin: (call) => usual.begin({ ...call, content: null }) };
}

/** Planted: two callers at once both do the work. */
function notExclusive(usual: Idempotency): Idempotency {
  return {
    ...usual,
    async begin(call) {
      try {
        return await usual.begin(call);
      } catch (error) {
        if (!/under way/.test(String(error))) throw error;
        const { keyId, method, path: at, idempotencyKey } = call;
        return { claim: { keyId, method, path: at, idempotencyKey, term: 0, async bind() {} } };
      }
    },
  };
}
