/**
 * Three workspaces with one of everything that a request of the customer API can name, made through the API itself: a kind of
 * thing is known here as soon as the document has a collection of it. Each thing has the mark of its workspace in its name.
 */
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import {
  createFindingMonitor,
  findingOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { listOperations, type Operation } from './operations.ts';
import { createRawClient, type RawRequest } from './raw-client.ts';

/** Of two workspaces of one organization, and of another one. */
export const workspaces = ['own', 'sibling', 'other'] as const;
export type Workspace = (typeof workspaces)[number];
/** Whose a thing is; `deleted` ones were of `own`. */
export type Owner = Workspace | 'deleted' | 'nonexistent';
export type ThingId = number | string;
export type IsolationWorld = Awaited<ReturnType<typeof createIsolationWorld>>;

const missingId = 987_654_321;

/** Stands in the name of every thing of a workspace, and in no answer about another. */
export const markOf = (tenant: Tenant): string => `thing-of-${tenant.id}-`;

export async function createIsolationWorld() {
  const world = await createWorld({ deploysPerHour: 1_000_000 });
  const client = createRawClient(world.url);
  const [first, second] = [
    await world.createCustomer('canary-own'),
    await world.createCustomer('canary-other'),
  ];
  const siblingOf = { organizationId: first.tenant.organizationId, name: 'canary-sibling' };
  const tenants: Record<Workspace, Tenant> = {
    own: first.tenant,
    sibling: await world.accounts.createTenant(systemActor, siblingOf),
    other: second.tenant,
  };
  const profile = { legalName: 'Sibling', email: 'sibling@example.test', country: 'DE' };
  await world.accounts.setBillingProfile(systemActor, tenants.sibling.id, profile);
  const deposit = { amountQuanta: 10_000_000, reference: 'sibling', description: 'Deposit' };
  await world.billing.addDeposit(systemActor, tenants.sibling.id, deposit);
  const ids = new Map<string, ThingId>();
  const monitor = await createFindingMonitor(world);
  let made = 0;
  for (const workspace of workspaces) await furnish(workspace);

  async function furnish(workspace: Workspace): Promise<void> {
    const tenant = tenants[workspace];
    const { token } = await world.apiKeys.issueKey(systemActor, {
      organizationId: tenant.organizationId,
      personId: (workspace === 'other' ? second : first).owner.id,
      name: `${markOf(tenant)}key`,
      scope: 'full',
      tenantIds: [tenant.id],
    });
    const call = async (method: string, path: string, body?: object): Promise<ThingId> => {
      const answer = await fetch(`${world.url}/api/v2${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${method} ${path} to make a thing: ${answer.status} ${text}`);
      if (text === '') return missingId;
      const made = JSON.parse(text) as { id?: ThingId; key_id?: ThingId };
      return made.id ?? made.key_id!;
    };
    /** Where things of this kind are listed. */
    const collectionOf = (resource: string) =>
      resource === 'firewall-rule'
        ? `/servers/${ids.get(`server ${workspace}`)}/firewall/rules`
        : `/${resource}${resource.endsWith('s') ? 'es' : 's'}`;
    const make = async (resource: string): Promise<ThingId> => {
      made += 1;
      const name = `${markOf(tenant)}${made}`;
      if (resource === 'server') return makeServer(tenant, name);
      if (resource === 'action') {
        const { serverId } = await world.deploy(tenant, name);
        return call('POST', `/servers/${serverId}/actions`, { action: 'reboot' });
      }
      if (resource === 'snapshot') {
        const { serverId } = await world.deploy(tenant, name);
        const snapshot = await call('POST', `/servers/${serverId}/snapshots`, { name });
        await world.jobs.drain();
        return snapshot;
      }
      if (resource === 'server-address') {
        const [allocation] = await world.addresses.listAllocationsOfServers([
          ids.get(`server ${workspace}`) as number,
        ]);
        world.dns.lead('proof.example.net', allocation!.address);
        return allocation!.address;
      }
      if (resource === 'delivery') {
        const webhook = ids.get(`webhook ${workspace}`);
        await call('POST', `/webhooks/${webhook}/test`);
        const { rows } = await world.database.pool.query(
          'select max(id) as id from webhook_deliveries where endpoint_id = $1',
          [webhook],
        );
        return rows[0].id;
      }
      const [pattern, collection] = [collectionOf(resource).replace(/\d+/, '{id}'), collectionOf(resource)];
      const operation = listOperations().find(
        ({ method, path }) => method === 'POST' && path === `/api/v2${pattern}`,
      );
      if (!operation) throw new Error(`no code creates a ${resource}: add it here`);
      return call('POST', collection, {
        ...operation.sampleBody,
        ...(operation.bodyFields.includes('name') && { name }),
        ...(operation.bodyFields.includes('public_key') && { public_key: examplePublicKey(made) }),
      });
    };
    const resources = new Set(listOperations().flatMap(({ things }) => things.map((one) => one.resource)));
    for (const resource of resources) {
      ids.set(`${resource} ${workspace}`, await make(resource));
      // An action is never removed: it says how its server went; a revoked key stays in the list. An address goes with its server.
      if (workspace !== 'own' || ['action', 'key', 'delivery', 'server-address'].includes(resource)) continue;
      const gone = await make(resource);
      await call('DELETE', `${collectionOf(resource)}/${gone}`);
      ids.set(`${resource} deleted`, gone);
    }
    const network = { network_id: ids.get(`network ${workspace}`) };
    await call('POST', `/servers/${ids.get(`server ${workspace}`)}/networks`, network);
    await world.jobs.drain();
  }

  /** With the potential vulnerability that `sampleBody` names. */
  async function makeServer(tenant: Tenant, name: string): Promise<number> {
    const { serverId } = await world.deploy(tenant, name);
    const [allocation] = await world.addresses.listAllocationsOfServers([serverId]);
    const service = { port: 1, findings: [findingOf('CVE-2024-0001')], observed_at: secondsAgo(-1) };
    const services = [projectedService(service)];
    await monitor.deliver(projectionOf(allocation!, { checkedSecondsAgo: -1, services }));
    return serverId;
  }

  return {
    world,
    client,
    tenants,
    /** A full key of the owner for these workspaces of `own`'s organization; absent: for all of them. */
    createKey: (...of: Workspace[]) =>
      world.createKey(first, 'full', of.length === 0 ? null : of.map((one) => tenants[one].id)),
    /** Ids of the things that an operation names, each of its owner. */
    idsOf: (operation: Operation, owners: readonly Owner[]): ThingId[] =>
      operation.things.map(({ resource }, i) => {
        const never = typeof ids.get(`${resource} own`) === 'string' ? 'nothing' : missingId;
        return ids.get(`${resource} ${owners[i]}`) ?? never;
      }),
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

/** The request of an operation with these things; `tenant` names a workspace in the query. */
export function requestOf(
  operation: Operation,
  token: string,
  ids: readonly ThingId[],
  tenant: number | null = null,
): RawRequest {
  let path = operation.path;
  const query = new URLSearchParams(operation.sampleQuery);
  const body: Record<string, unknown> = { ...operation.sampleBody };
  for (const [index, thing] of operation.things.entries()) {
    if (thing.in === 'path') path = path.replace(`{${thing.name}}`, String(ids[index]));
    else if (thing.in === 'query') query.set(thing.name, String(ids[index]));
    else body[thing.name] = thing.isList ? [ids[index]] : ids[index];
  }
  if (tenant !== null) query.set('tenant', String(tenant));
  return {
    method: operation.method,
    path: query.size === 0 ? path : `${path}?${query}`,
    headers: [
      ['authorization', `Bearer ${token}`],
      ...(operation.hasBody ? [['content-type', 'application/json'] as const] : []),
    ],
    body: operation.hasBody ? JSON.stringify(body) : undefined,
  };
}
