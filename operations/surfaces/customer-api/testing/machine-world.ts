/** A world whose hypervisor does what a test tells it, and servers that run in it. */
import { CodedError } from '#common/errors/index.ts';
import type { Capability } from '#contracts/capabilities.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createApiClient } from './client.ts';

export type MachineWorld = Awaited<ReturnType<typeof createMachineWorld>>;

export const refusedBy = (message: string) => new CodedError('hypervisor.refused', message);

export async function createMachineWorld() {
  const node = {
    /** What the hypervisor says to a change of a guest; null: it carries it out. */
    refusal: null as CodedError | null,
    hasAgent: true,
    hasDrive: true,
    /** Guests whose node was asked to forget a password. */
    forgotten: [] as string[],
    unable: [] as readonly Capability[],
    /** Copies of disks go on. */
    copying: false,
    /** How far guests are that are made; null: as far as can be. */
    making: null as 'copying' | 'booting' | null,
    /** Guests of these names are asked to halt and do not. */
    stubborn: new Set<string>(),
  };
  const world = await createWorld({
    snapshotGbQuanta: 500,
    hypervisor: (usual) => {
      const refused = () => {
        if (node.refusal !== null) throw node.refusal;
      };
      return {
        ...usual,
        get capabilities() {
          return usual.capabilities.filter((one) => !node.unable.includes(one));
        },
        ensureGuest: async (...given) => node.making ?? usual.ensureGuest(...given),
        async signalShutdown(name) {
          if (!node.stubborn.has(name)) await usual.signalShutdown(name);
        },
        async rebuildGuest(...given) {
          refused();
          return usual.rebuildGuest(...given);
        },
        async rescueGuest(...given) {
          refused();
          return usual.rescueGuest(...given);
        },
        async changeIso(...given) {
          refused();
          return node.hasDrive ? usual.changeIso(...given) : 'next_boot';
        },
        async resizeGuest(...given) {
          refused();
          return usual.resizeGuest(...given);
        },
        async createSnapshot(...given) {
          refused();
          return node.copying ? { progress: 40 } : usual.createSnapshot(...given);
        },
        async setRootPassword(...given) {
          return node.hasAgent ? usual.setRootPassword(...given) : 'next_boot';
        },
        async forgetRootPassword({ name }) {
          node.forgotten.push(name);
        },
      };
    },
  });
  const call = createApiClient(world.url);
  await ensureImage(world.database.db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  const plan = { vcpus: 2, memoryMb: 4_096, diskGb: 80 };
  await ensurePlan(world.database.db, {
    ...{ ...plan, slug: 'large', name: 'Large', hourlyQuanta: 200, monthlyCapQuanta: 120_000 },
  });
  await ensurePlan(world.database.db, {
    ...{ ...plan, diskGb: 20, slug: 'wide', name: 'Wide', hourlyQuanta: 150, monthlyCapQuanta: 90_000 },
  });

  async function running(name: string) {
    const customer = await world.createCustomer(name);
    const key = await world.createKey(customer);
    const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
    const path = `/api/v2/servers/${serverId}`;
    return {
      ...{ customer, key, serverId, path },
      act: (action: string, body: object, headers: Record<string, string> = {}) =>
        call('POST', `${path}/actions/${action}`, { key, body, headers }),
      read: async () => (await call('GET', path, { key })).body,
      action: async (id: number) => (await call('GET', `/api/v2/actions/${id}`, { key })).body,
      guest: async () => {
        const text =
          'select image, vcpus, memory_mb, disk_gb, power, password_digest, rescue_image, rescue_password_digest, iso from simulated_guests where name = $1';
        return (await world.database.pool.query(text, [`vm-${serverId}`])).rows[0];
      },
      room: async () => {
        const text =
          'select vcpus, memory_mb, disk_gb from node_reservations where server_id = $1 and released_at is null';
        return Object.values((await world.database.pool.query(text, [serverId])).rows[0]);
      },
      eventsOf: async () => {
        const text = "select type from events where data ->> 'server_id' = $1 order by id";
        return (await world.database.pool.query(text, [String(serverId)])).rows.map(
          (row) => row.type as string,
        );
      },
    };
  }

  return {
    ...{ world, call, node, running },
    /** Makes delayed jobs due, as time would. */
    due: () => world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null'),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}
