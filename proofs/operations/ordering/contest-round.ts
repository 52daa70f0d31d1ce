/** One round of `contest-proof.ts`: its accounts, what their orders want, and exactly as much of it as the round says. */
import { systemActor } from '#operations/accounts/index.ts';
import type { CreateServerInput } from '#operations/ordering/index.ts';
import type { World } from '#operations/testing/create-world.ts';

export const contests = [
  'a private address',
  'the last private addresses',
  'the last room',
  'the last public addresses',
  'a network that is deleted',
] as const;
export type Contest = (typeof contests)[number];

export interface ContestRound {
  /** Two accounts where the thing does not belong to one. */
  tenantIds: number[];
  /** What each of them orders. */
  inputs: CreateServerInput[];
  /** Servers that there is enough for. */
  enough: number;
  /** What each account had before. */
  balance: number;
  /** Something else than orders decides how many servers are made. */
  isDisturbed: boolean;
  /** What happens beside the orders. */
  disturb(): Promise<string>;
  /** Takes the round's servers away. */
  clear(): Promise<void>;
}

export interface RoundPlan {
  contest: Contest;
  isByCard: boolean;
  isDeclined: boolean;
  enough: number;
  number: number;
}

const declined = '4000000000000002';

export async function openRound(world: World, plan: RoundPlan): Promise<ContestRound> {
  const { pool } = world.database;
  const wantsNetwork = plan.contest !== 'the last room' && plan.contest !== 'the last public addresses';
  const accounts = [];
  for (const each of wantsNetwork ? ['one'] : ['one', 'two'])
    accounts.push(await openAccount(world, plan, `Round ${plan.number} ${each}`, wantsNetwork));
  const tenantIds = accounts.map((account) => account.tenantId);
  const networkId = accounts[0]!.networkId;
  await resize(world, plan);
  return {
    tenantIds,
    balance: plan.isByCard ? 0 : 1_000,
    enough: enoughOf(plan),
    isDisturbed: plan.contest === 'a network that is deleted',
    inputs: accounts.map((account) => ({
      ...account,
      plan: 'small',
      image: 'debian-12',
      networkIp: plan.contest === 'a private address' ? '10.8.0.5' : undefined,
    })),
    disturb: async () =>
      plan.contest !== 'a network that is deleted'
        ? ''
        : world.networks.deleteNetwork(systemActor, tenantIds[0]!, networkId!).then(
            () => 'deleted',
            (error) => String(error.code),
          ),
    async clear() {
      await pool.query(
        `with gone as (select id from servers where tenant_id = any($1::bigint[])),
           a as (delete from network_attachments where server_id in (select id from gone)),
           b as (delete from server_actions where server_id in (select id from gone)),
           c as (delete from server_interfaces where server_id in (select id from gone)),
           d as (delete from allocations where server_id in (select id from gone)),
           e as (delete from node_reservations where server_id in (select id from gone)),
           f as (delete from jobs)
         select 1`,
        [tenantIds],
      );
      await pool.query('delete from servers where tenant_id = any($1::bigint[])', [tenantIds]);
    },
  };
}

async function openAccount(
  world: World,
  plan: RoundPlan,
  name: string,
  wantsNetwork: boolean,
): Promise<{ tenantId: number; networkId: number | undefined }> {
  const { tenant } = await world.createCustomer(name);
  await world.setBalance(tenant, plan.isByCard ? 0 : 1_000);
  if (plan.isByCard) await world.saveCard(tenant, plan.isDeclined ? declined : undefined);
  // A /29 has five addresses for servers.
  const wish = { tenantId: tenant.id, name: 'back', cidr: '10.8.0.0/29' };
  const network = wantsNetwork ? await world.networks.createNetwork(systemActor, wish) : null;
  return { tenantId: tenant.id, networkId: network?.id };
}

function enoughOf({ contest, enough }: RoundPlan): number {
  if (contest === 'a private address') return 1;
  return contest === 'the last private addresses' || contest === 'a network that is deleted' ? 5 : enough;
}

/** Exactly as much room and as many public addresses as the round has; plenty of what it is not about. */
async function resize(world: World, { contest, enough }: RoundPlan): Promise<void> {
  const { pool } = world.database;
  await pool.query(
    `update address_pools set last_address = first_address + $1::int where family(first_address) = 4`,
    [contest === 'the last public addresses' ? enough - 1 : 100],
  );
  await pool.query(`update nodes set memory_mb = $1 * (select memory_mb from plans where slug = 'small')`, [
    contest === 'the last room' ? enough : 100,
  ]);
}
