/** The steps of the model test: what a customer may do with networks, and what must come of it. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CodedError } from '#common/errors/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { World } from '#operations/testing/create-world.ts';

/** What should be. Blocks are /29 with an index: few enough to collide, small enough to fill. */
export interface Model {
  /** By the number that the model gave it. */
  networks: Map<number, { tenant: number; block: number }>;
  /** Of a network's number and a server's index; the value is the last byte of its address. */
  nics: Map<string, number>;
  made: number;
}

export interface Real {
  world: World;
  actor: Actor;
  tenants: number[];
  servers: { id: number; tenantId: number }[];
  /** The database's id of each of the model's networks. */
  networks: Map<number, number>;
  count: () => void;
}

const networksMax = 3;
const blocks = 5;
const serversOfTenant = 3;
const addresses = [2, 3, 4, 5, 6];

/** The error's code, or null for a call that succeeded. */
async function codeOf(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work();
    return null;
  } catch (error) {
    if (error instanceof CodedError) return error.code;
    throw error;
  }
}

const key = (network: number, server: number) => `${network}:${server}`;
const membersOf = (model: Model, network: number) =>
  [...model.nics].filter(([nic]) => nic.startsWith(`${network}:`));
const pick = (model: Model, at: number) =>
  [...model.networks.keys()].at(at % Math.max(1, model.networks.size));

type Step = fc.AsyncCommand<Model, Real>;

/** A step on one of the networks that there are. */
function onNetwork(
  text: string,
  at: number,
  run: (model: Model, real: Real, network: number) => Promise<void>,
): Step {
  return {
    check: (model) => model.networks.size > 0,
    async run(model, real) {
      real.count();
      await run(model, real, pick(model, at)!);
    },
    toString: () => `${text}(network ${at})`,
  };
}

function create(tenant: number, block: number): Step {
  return {
    check: () => true,
    async run(model, real) {
      real.count();
      const mine = [...model.networks.values()].filter((one) => one.tenant === tenant);
      const expected =
        mine.length >= networksMax
          ? 'networks.limit'
          : mine.some((one) => one.block === block)
            ? 'networks.cidr_overlap'
            : null;
      const input = { tenantId: real.tenants[tenant]!, name: 'n', cidr: `10.9.0.${block * 8}/29` };
      const number = model.made;
      const code = await codeOf(async () => {
        real.networks.set(number, (await real.world.networks.createNetwork(real.actor, input)).id);
      });
      assert.equal(code, expected, 'create');
      if (code !== null) return;
      model.made += 1;
      model.networks.set(number, { tenant, block });
    },
    toString: () => `create(${tenant}, ${block})`,
  };
}

function attach(at: number, tenant: number, server: number, last: number | null): Step {
  return onNetwork(`attach(server ${tenant}.${server}, ${last})`, at, async (model, real, network) => {
    await real.world.jobs.drain();
    const { tenant: owner, block } = model.networks.get(network)!;
    const index = tenant * serversOfTenant + server;
    const present = model.nics.get(key(network, index));
    const taken = new Set(membersOf(model, network).map(([, address]) => address));
    const free = last ?? addresses.find((address) => !taken.has(address)) ?? null;
    const expected =
      owner !== tenant
        ? 'networks.not_found'
        : present !== undefined
          ? last === null || last === present
            ? null
            : 'networks.already_attached'
          : free === null
            ? 'networks.limit'
            : taken.has(free)
              ? 'networks.ip_in_use'
              : null;
    const input = {
      serverId: real.servers[index]!.id,
      networkId: real.networks.get(network)!,
      ip: last === null ? undefined : `10.9.0.${block * 8 + last}`,
    };
    let given = '';
    const code = await codeOf(async () => {
      given = (await real.world.networks.attachServer(real.actor, null, input)).attachment.ip;
    });
    assert.equal(code, expected, 'attach');
    if (code !== null) return;
    const address = present ?? free!;
    assert.equal(given, `10.9.0.${block * 8 + address}`);
    model.nics.set(key(network, index), address);
  });
}

function detach(at: number, server: number, isFollowedByWork: boolean): Step {
  return onNetwork(`detach(server ${server})`, at, async (model, real, network) => {
    const isThere = model.nics.has(key(network, server));
    const input = { serverId: real.servers[server]!.id, networkId: real.networks.get(network)! };
    const code = await codeOf(() => real.world.networks.detachServer(real.actor, null, input));
    assert.equal(code, isThere ? null : 'networks.not_found', 'detach');
    if (!isThere) return;
    // While it leaves, the network still counts it.
    const deletion = () => real.world.networks.deleteNetwork(real.actor, null, input.networkId);
    if (!isFollowedByWork) assert.equal(await codeOf(deletion), 'networks.in_use');
    await real.world.jobs.drain();
    model.nics.delete(key(network, server));
  });
}

function remove(at: number): Step {
  return onNetwork('delete', at, async (model, real, network) => {
    const id = real.networks.get(network)!;
    const isUsed = membersOf(model, network).length > 0;
    const code = await codeOf(() => real.world.networks.deleteNetwork(real.actor, null, id));
    assert.equal(code, isUsed ? 'networks.in_use' : null, 'delete');
    if (isUsed) return;
    model.networks.delete(network);
    assert.equal(await real.world.networks.findNetwork(real.actor, null, id), null);
  });
}

function look(at: number): Step {
  return onNetwork('look', at, async (model, real, network) => {
    const { block } = model.networks.get(network)!;
    const members = await real.world.networks.listMembers(real.actor, null, real.networks.get(network)!);
    const expected = membersOf(model, network)
      .map(([nic, address]) => `${real.servers[Number(nic.split(':')[1])]!.id} 10.9.0.${block * 8 + address}`)
      .sort();
    assert.deepEqual(members.map((member) => `${member.serverId} ${member.ip}`).sort(), expected, 'look');
  });
}

function sync(at: number): Step {
  return onNetwork('sync', at, async (_model, real, network) => {
    await real.world.networks.syncNetwork(real.actor, null, real.networks.get(network)!);
  });
}

/** Arbitraries for every kind of step. */
export function networkSteps(tenants: number): fc.Arbitrary<Step>[] {
  const at = fc.nat(20);
  const tenant = fc.nat(tenants - 1);
  const server = fc.nat(serversOfTenant - 1);
  const address = fc.option(fc.constantFrom(...addresses), { nil: null, freq: 1 });
  const attaching = fc
    .tuple(at, tenant, server, address)
    .map(([network, who, which, last]) => attach(network, who, which, last));
  return [
    fc.tuple(tenant, fc.nat(blocks - 1)).map(([who, block]) => create(who, block)),
    // Attaching is what fills networks, so it comes up more often than anything else.
    attaching,
    attaching,
    attaching,
    fc
      .tuple(at, fc.nat(tenants * serversOfTenant - 1), fc.boolean())
      .map(([network, which, isFollowed]) => detach(network, which, isFollowed)),
    at.map(remove),
    at.map(look),
    at.map(sync),
  ];
}
