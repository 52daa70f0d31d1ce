/** What the audited routes act on: one customer, one operator, and things that are made when a case asks for them. */
import { CodedError } from '#common/errors/index.ts';
import { type CustomerActor, systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/dated-world.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';
import { createFindingMonitor, projectionOf } from '#operations/testing/projection-of.ts';
import { visit } from '#operations/testing/visit.ts';
import { casesOf, textsOf } from '#service-kit/audit/testing/audited-routes.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export type Stage = Awaited<ReturnType<typeof createStage>>;

export async function createStage() {
  let isBroken = false;
  const world = await createWorld({
    networksMax: 100,
    addressesMax: 100,
    ...{ bandwidthSource: 'telemetry', bandwidthOverageQuanta: 50_000, bandwidthLimitMbit: 10 },
    hypervisor: (usual) => ({
      ...usual,
      async ensureGuest(guest, step) {
        if (isBroken) throw new CodedError('hypervisor.refused', 'The hypervisor is broken.');
        return usual.ensureGuest(guest, step);
      },
    }),
  });
  const staff = await world.accounts.createPerson(systemActor, {
    email: 'operator@staff.test',
    name: 'Operator',
    password,
    staffRole: 'operator',
  });
  const customer = await world.createCustomer('Audited');
  const { tenant, owner, email } = customer;
  await world.setBalance(tenant, 100_000_000);
  const key = await world.createKey(customer);
  const actor = async () => (await world.accounts.customerActorOf(owner.id)) as CustomerActor;
  const db: Queryable = world.database.db;
  let made = 0;
  let monitor: Awaited<ReturnType<typeof createFindingMonitor>> | undefined;
  const endpoints: number[] = [];
  const next = () => {
    made += 1;
    return made;
  };
  const member = async () => {
    const person = await world.accounts.createPerson(systemActor, {
      email: `member-${next()}@audited.test`,
      name: 'Member',
      password,
    });
    await world.accounts.addMember(systemActor, tenant.organizationId, person.id);
    return person;
  };
  const chargeWhenUsedUp = () =>
    world.bandwidth.chooseWhenUsedUp(
      systemActor,
      { tenantId: tenant.id, openedAt: tenant.createdAt },
      'charge',
    );
  const network = () =>
    world.networks.createNetwork(systemActor, {
      tenantId: tenant.id,
      name: `net-${next()}`,
      location: 'fra',
    });
  const server = async (name = `web-${next()}`) => {
    const { serverId } = await world.ordering.createServer(systemActor, {
      tenantId: tenant.id,
      plan: 'small',
      image: 'debian-12',
      location: 'fra',
      name,
    });
    await world.jobs.drain();
    return serverId;
  };
  const callers = {
    owned: await visit(world, email, '/client/'),
    operated: await visit(world, 'operator@staff.test', '/console/'),
    /** A call of the customer API. */
    call: callWith(world, key),
  };
  return {
    world,
    db,
    staff,
    tenant,
    owner,
    email,
    next,
    ...callers,
    /** The same callers, for what has to be there before the request that is tried; another may take the place of those above. */
    setUp: callers,
    member,
    network,
    chargeWhenUsedUp,
    server,
    async attached() {
      const [one, serverId] = [await network(), await server()];
      await world.networks.attachServer(systemActor, null, { serverId, networkId: one.id });
      await world.jobs.drain();
      return { networkId: one.id, serverId };
    },
    /** A server with a potential vulnerability, as a caller names it. */
    async found() {
      const serverId = await server();
      await world.backdate(serverId, '1 hour');
      const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
      monitor ??= await createFindingMonitor(world);
      await monitor.deliver(projectionOf(allocation!));
      const [finding] = await world.protectFindings.list(
        systemActor,
        { serverId, tenantId: tenant.id },
        { limit: 1 },
      );
      const { address, transport, port, fingerprint, cveId } = finding!;
      return { serverId, finding: { address, transport, port, fingerprint, cve_id: cveId } };
    },
    async failedServer(name?: string) {
      isBroken = true;
      const serverId = await server(name);
      isBroken = false;
      return serverId;
    },
    /** A complete snapshot of a server. */
    async snapshot() {
      const made = await world.servers.createSnapshot(systemActor, null, await server(), undefined);
      await world.jobs.drain();
      return made;
    },
    /** A kept address; one that a server has, where it is asked for. */
    async address(ofServer?: number) {
      const one = await world.addresses.reserveAddress(systemActor, { tenantId: tenant.id, location: 'fra' });
      if (ofServer === undefined) return one.id;
      const input = { serverId: ofServer, addressId: one.id };
      await world.servers.attachAddress(systemActor, tenant.id, input);
      await world.jobs.drain();
      return one.id;
    },
    /** A server whose address has a reverse name. */
    async named() {
      const serverId = await server();
      const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
      const { address } = allocation!;
      const of = { tenantId: tenant.id, serverId, address };
      await world.reverseDns.setName(systemActor, of, { name: 'named.example.org', isForced: true });
      return { serverId, address };
    },
    async sshKey() {
      const key = { tenantId: tenant.id, name: `ssh ${next()}`, publicKey: examplePublicKey(next()) };
      return (await world.sshKeys.addKey(systemActor, key)).id;
    },
    /** A server whose firewall has two rules. */
    async filtered() {
      const serverId = await server();
      for (const port of ['80', '443'])
        await world.firewalls.changeFirewall(systemActor, serverId, await version(serverId), {
          kind: 'add',
          rule: {
            direction: 'inbound',
            action: 'accept',
            protocol: 'tcp',
            ports: port,
            peers: [],
            description: '',
          },
        });
      const { rules } = (await world.firewalls.readFirewall(systemActor, null, serverId))!;
      return { ':id': serverId, version: await version(serverId), rule: rules[0]!.id };
    },
    async endpoint() {
      // An organization has 20 at most.
      const [oldest] = endpoints.length < 10 ? [] : endpoints.splice(0, 1);
      if (oldest !== undefined)
        await world.webhooks.deleteEndpoint(await actor(), oldest).catch(() => undefined);
      const { endpointId } = await world.webhooks.createEndpoint(await actor(), {
        organizationId: tenant.organizationId,
        tenantId: null,
        url: 'http://127.0.0.1:9/hook',
        description: '',
        eventTypes: ['key.created'],
      });
      endpoints.push(endpointId);
      return endpointId;
    },
    actor,
    keyId: async (name = `key ${next()}`) =>
      (
        await world.apiKeys.issueKey(systemActor, {
          organizationId: tenant.organizationId,
          personId: owner.id,
          name,
          scope: 'read',
          tenantIds: null,
        })
      ).keyId,
    project: () =>
      world.adminProjects.create(systemActor, {
        name: `project ${next()}`,
        permissions: [],
        clusterIds: null,
      }),
    otherCustomer: () => world.createCustomer(`Other${next()}`),
    async location() {
      return world.catalog.addLocation(systemActor, { slug: `loc-${next()}`, name: 'Here', country: 'DE' });
    },
    node: () =>
      world.clusters.addNode(systemActor, {
        clusterId: world.clusterId,
        name: `node-${next()}`,
        uri: null,
        storagePool: null,
        bridge: 'br0',
        networkBridges: null,
        vcpus: 1,
        memoryMb: 1024,
        diskGb: 10,
      }),
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };

  async function version(serverId: number): Promise<number> {
    return (await world.firewalls.readFirewall(systemActor, null, serverId))!.version;
  }
}

/** Calls of the customer API with a key. */
export const callWith =
  ({ url }: Pick<World, 'url'>, key: string) =>
  (method: string, path: string, body?: object) =>
    fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });

/** The case of a form of the portal or the console. */
export const form = casesOf((stage: Stage, _, path, fields) =>
  (path.startsWith('/console/') ? stage.operated : stage.owned).post(path, textsOf(fields)),
);

/** The case of an operation of the customer API. */
export const operation = casesOf((stage: Stage, method, path, fields) =>
  stage.call(method, path, Object.keys(fields).length === 0 ? undefined : fields),
);
