/**
 * Makes things of every kind that a request can name, in any workspace, through the API itself; so a kind is known here
 * as soon as the document has a collection of it. Every thing bears the mark of its workspace in its name.
 */
import type { Tenant } from '#operations/accounts/index.ts';
import { listOperations, type Operation } from '#operations/surfaces/customer-api/testing/operations.ts';
import type { RawClient } from '#operations/surfaces/customer-api/testing/raw-client.ts';
import type { World } from '#operations/testing/create-world.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import {
  createFindingMonitor,
  findingOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';

export type ThingId = number | string;

export interface Things {
  /** A living thing of this kind; the same one until it is used up. */
  get(resource: string, tenant: Tenant): Promise<ThingId>;
  /** One that was and is gone. */
  gone(resource: string, tenant: Tenant): Promise<ThingId>;
  /** An id of this kind that nothing ever had. */
  never(resource: string): ThingId;
  /** The next `get` of this kind makes another. */
  useUp(resource: string, tenant: Tenant): void;
  /** Makes what the request presupposes: a server is a member of the network before it can leave it. */
  tie(operation: Operation, ids: readonly ThingId[], tenant: Tenant): Promise<void>;
  /** The next `tie` has to be made again. */
  untie(ids: readonly ThingId[]): void;
}

const missingId = 987_654_321;

/** What stands in the name of every thing of a workspace, and in no answer about another. */
export function markOf(tenant: Tenant): string {
  return `thing-of-${tenant.id}-`;
}

/** `keys`: a full key for each workspace. */
export function createThings(world: World, client: RawClient, keys: ReadonlyMap<number, string>): Things {
  const living = new Map<string, ThingId>();
  const gone = new Map<string, ThingId>();
  const ties = new Set<string>();
  let made = 0;
  let monitor: Awaited<ReturnType<typeof createFindingMonitor>> | undefined;

  async function call(
    tenant: Tenant,
    method: string,
    path: string,
    body?: object,
  ): Promise<Record<string, unknown>> {
    const headers: [string, string][] = [
      ['authorization', `Bearer ${keys.get(tenant.id)}`],
      ['x-tenant-id', String(tenant.id)],
      ...(body === undefined ? [] : [['content-type', 'application/json'] as [string, string]]),
    ];
    const answer = await client.send({
      method,
      path: `/api/v2${path}`,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    if (answer.status >= 300)
      throw new Error(`${method} ${path} to make a thing: ${answer.status} ${answer.text}`);
    return answer.text === '' ? {} : (JSON.parse(answer.text) as Record<string, unknown>);
  }

  /** With the potential vulnerability that `sampleBody` names. */
  async function makeServer(tenant: Tenant, name: string): Promise<number> {
    const { serverId } = await world.deploy(tenant, name);
    const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
    monitor ??= await createFindingMonitor(world);
    const services = [
      projectedService({
        ...{ port: 1, findings: [findingOf('CVE-2024-0001')] },
        observed_at: secondsAgo(-1),
      }),
    ];
    const outcomes = await monitor.deliver(projectionOf(allocation!, { checkedSecondsAgo: -1, services }));
    if (outcomes[0] !== 'accepted') throw new Error(`the finding of a server was ${outcomes[0]}`);
    return serverId;
  }

  async function make(resource: string, tenant: Tenant): Promise<ThingId> {
    made += 1;
    const name = `${markOf(tenant)}${made}`;
    if (resource === 'server') return makeServer(tenant, name);
    if (resource === 'action') {
      const server = await world.deploy(tenant, name);
      return (await call(tenant, 'POST', `/servers/${server.serverId}/actions`, { action: 'reboot' }))
        .id as number;
    }
    const operation = listOperations().find(
      (one) => one.method === 'POST' && one.path === `/api/v2/${resource}s`,
    );
    if (operation === undefined) throw new Error(`no code creates a ${resource}: add it to things.ts`);
    const body = { ...operation.sampleBody, ...(operation.bodyFields.includes('name') ? { name } : {}) };
    return (await call(tenant, 'POST', `/${resource}s`, body)).id as ThingId;
  }

  async function remove(resource: string, tenant: Tenant, id: ThingId): Promise<void> {
    await call(tenant, 'DELETE', `/${resource}s/${id}`);
    await world.jobs.drain();
  }

  const things: Things = {
    async get(resource, tenant) {
      const key = `${resource} ${tenant.id}`;
      const known = living.get(key) ?? (await make(resource, tenant));
      living.set(key, known);
      return known;
    },
    async gone(resource, tenant) {
      // An action is never removed: it says how its server went.
      if (resource === 'action') return missingId;
      const key = `${resource} ${tenant.id}`;
      const known = gone.get(key);
      if (known !== undefined) return known;
      const id = await make(resource, tenant);
      await remove(resource, tenant, id);
      gone.set(key, id);
      return id;
    },
    never: (resource) => (typeof gone.get(resource) === 'string' ? 'nothing' : missingId),
    useUp(resource, tenant) {
      living.delete(`${resource} ${tenant.id}`);
    },
    async tie(operation, ids, tenant) {
      if (!isMembership(operation) || ties.has(ids.join())) return;
      const id = (resource: string) =>
        ids[operation.things.findIndex((thing) => thing.resource === resource)];
      await call(tenant, 'POST', `/servers/${id('server')}/networks`, { network_id: id('network') });
      await world.jobs.drain();
      ties.add(ids.join());
    },
    untie(ids) {
      ties.delete(ids.join());
    },
  };
  return things;
}

/** An operation on the membership of a server in a network, not on either of them. */
export function isMembership(operation: Operation): boolean {
  const named = operation.things.filter((thing) => thing.in === 'path').map((thing) => thing.resource);
  return named.includes('server') && named.includes('network');
}
