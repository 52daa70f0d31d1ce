/**
 * Orders one hourly-billed server. The order and its payment are the orders feature's; what is queued once it is paid is
 * here: addresses, the server's row and its provisioning job, in one transaction, so that whatever was answered is what
 * will happen, also after a crash.
 */
import { CodedError, hasCode } from '#common/errors/index.ts';
import { type Actor, systemJob } from '#operations/accounts/index.ts';
import { assignAddresses } from '#operations/addresses/index.ts';
import type { Catalog, Cluster, Image, Location, Plan } from '#operations/catalog/index.ts';
import { placeGuest, releaseRoom } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { joinNetwork } from '#operations/networks/index.ts';
import type { DeployBudget, OrderForecast, StoredOrder } from '#operations/orders/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { requester, requireWrite } from './authorise.ts';
import type { ServersDeps } from './index.ts';
import { orderFaults } from './order-faults.ts';
import { macOf } from './server.ts';
import type { FieldFault } from './server-faults.ts';
import * as store from './store.ts';

export interface CreateServerInput {
  tenantId: number;
  /** Slug or id. */
  plan: string | number;
  image: string | number;
  /** May be left out where there is one location only. */
  location?: string | number | undefined;
  name?: string | undefined;
  hostname?: string | undefined;
  sshKeys?: readonly string[] | undefined;
  userData?: string | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
  billingCycle?: string | undefined;
  /** One existing private network of the same account and location, joined from the first boot on. */
  networkId?: number | undefined;
  /** Its address there; absent: the lowest free one. */
  networkIp?: string | undefined;
  /** False: a server that is reached through its private network only. */
  publicIp?: boolean | undefined;
}

export interface CreateServerResult {
  serverId: number;
  orderId: number;
  /** As it stands on the order; for the answer to this call alone. */
  rootPassword: string;
  deploys: DeployBudget;
}

/** Told of the order in the transaction that makes it, so that whoever called can be found again. */
export type OnOrdered = (tx: Queryable, orderId: number) => Promise<void>;

export interface OrderingOptions {
  onOrdered?: OnOrdered;
  /** From the portal: `orders.repeated` is thrown for a form that was sent before, and for the same order within seconds. */
  checkout?: { formId: string | null };
}

export interface ServerForecast extends OrderForecast {
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** Credit that is left after a day of this server; null when it would not be made. */
  afterFirstDayQuanta: number | null;
}

interface Choice {
  plan: Plan;
  image: Image;
  locationId: number;
  clusters: Cluster[];
}

/** What an order remembers of its call, so that any process can carry it out. */
interface OrderRequest {
  input: CreateServerInput;
  requester: ReturnType<typeof requester>;
}

/**
 * Throws `servers.invalid` (details.fields), `orders.not_eligible` (details.refusal), `orders.deploy_rate`
 * (details.deploys), `servers.capacity`, `accounts.forbidden` and for the network what `joinNetwork` throws: nothing is
 * ordered then. Throws
 * `orders.payment_failed` (details.failure) when the card had to be charged and that did not succeed.
 */
export async function createServer(
  deps: ServersDeps,
  actor: Actor,
  input: CreateServerInput,
  { onOrdered, checkout }: OrderingOptions = {},
): Promise<CreateServerResult> {
  const { order } = await prepareOrder(deps, actor, input);
  const { tenantId, plan, image } = input;
  const onPlaced: OnOrdered = async (tx, orderId) => {
    await onOrdered?.(tx, orderId);
    const subject = { kind: 'order', id: orderId };
    await record(tx, actor, { operation: 'order.place', subject, tenantId, after: { plan, image } });
  };
  const placed = await deps.orders.placeOrder({ ...order, onOrdered: onPlaced, checkout });
  deps.wake();
  return placed;
}

/** What `createServer` would do, by the same code and the same refusals; nothing is left of it. */
export async function forecastServer(
  deps: ServersDeps,
  actor: Actor,
  input: CreateServerInput,
): Promise<ServerForecast> {
  const { order, plan } = await prepareOrder(deps, actor, input);
  const forecast = await deps.orders.forecastOrder(order);
  const day = Math.min(24 * plan.hourlyQuanta, plan.monthlyCapQuanta);
  const { balanceQuanta, dueQuanta } = forecast;
  return {
    ...forecast,
    hourlyQuanta: plan.hourlyQuanta,
    monthlyCapQuanta: plan.monthlyCapQuanta,
    afterFirstDayQuanta:
      balanceQuanta === null || dueQuanta === null ? null : balanceQuanta + dueQuanta - day,
  };
}

async function prepareOrder(deps: ServersDeps, actor: Actor, input: CreateServerInput) {
  requireWrite(actor, input.tenantId);
  const choice = await choose(deps.catalog, input, orderFaults(input));
  // Asked before anything is paid; the join itself asks again.
  if (input.networkId !== undefined)
    await deps.networks.checkJoin(
      { tenantId: input.tenantId, locationId: choice.locationId },
      { networkId: input.networkId, ip: input.networkIp },
    );
  const request: OrderRequest = { input, requester: requester(actor) };
  const order = {
    tenantId: input.tenantId,
    plan: choice.plan,
    request: { ...request },
    queue: (tx: Queryable, stored: StoredOrder) => queueServer(deps, tx, actor, stored, choice),
  };
  return { order, plan: choice.plan };
}

/** Carries out a paid order whose own process has died. */
export async function queueStoredOrder(
  deps: ServersDeps,
  tx: Queryable,
  order: StoredOrder,
): Promise<number> {
  const { input } = order.request as unknown as OrderRequest;
  return queueServer(deps, tx, systemJob('complete-orders'), order, await choose(deps.catalog, input));
}

/** Makes the server of an order and queues its provisioning. */
async function queueServer(
  deps: ServersDeps,
  tx: Queryable,
  actor: Actor,
  order: StoredOrder,
  choice: Choice,
): Promise<number> {
  const { input, requester: requestedBy } = order.request as unknown as OrderRequest;
  const serverId = await insertServer(deps, tx, input, choice, order.id);
  await store.insertAction(tx, { serverId, command: 'create', ...requestedBy });
  await enqueueJob(tx, 'servers.provision', { server_id: serverId });
  await emit(tx, { type: 'server.created', serverId });
  const { plan, image } = choice;
  await record(tx, actor, {
    operation: 'server.create',
    subject: { kind: 'server', id: serverId, name: input.name ?? null },
    tenantId: input.tenantId,
    after: { orderId: order.id, plan: plan.slug, image: image.slug, networkId: input.networkId },
  });
  return serverId;
}

async function insertServer(
  deps: ServersDeps,
  tx: Queryable,
  input: CreateServerInput,
  choice: Choice,
  orderId: number,
): Promise<number> {
  const id = await store.nextServerId(tx);
  const name = input.name ?? input.hostname ?? `server-${id}`;
  const { plan, image, clusters } = choice;
  const wanted = { tenantId: input.tenantId, hasPublicIp: input.publicIp ?? true };
  for (const [index, cluster] of clusters.entries()) {
    if (index === 0) {
      await store.insertServer(tx, {
        id,
        tenantId: input.tenantId,
        orderId,
        planId: plan.id,
        imageId: image.id,
        clusterId: cluster.id,
        name,
        hostname: input.hostname ?? hostnameOf(name, id),
        labels: input.labels ?? {},
        sshKeys: input.sshKeys ?? [],
        userData: input.userData ?? null,
        hourlyQuanta: plan.hourlyQuanta,
        monthlyCapQuanta: plan.monthlyCapQuanta,
        hasPublicIp: wanted.hasPublicIp,
      });
    } else {
      await store.moveServer(tx, id, cluster.id);
    }
    const placed = await tryCluster(deps, tx, { ...wanted, serverId: id, cluster, plan });
    if (placed === null) continue;
    if (placed.mac !== null) await store.insertInterface(tx, id, placed.mac);
    if (input.networkId !== undefined)
      await joinNetwork(
        tx,
        { serverId: id, tenantId: input.tenantId, locationId: cluster.locationId },
        { networkId: input.networkId, ip: input.networkIp },
      );
    return id;
  }
  throw new CodedError(
    'servers.capacity',
    'There is no room for another server in this location right now. Try again later.',
  );
}

interface Placing {
  tenantId: number;
  hasPublicIp: boolean;
  serverId: number;
  cluster: Cluster;
  plan: Plan;
}

/**
 * Gives the server room in this cluster, and addresses with the MAC that goes with them where it has public ones; null
 * when the cluster is full.
 */
async function tryCluster(
  deps: ServersDeps,
  tx: Queryable,
  { tenantId, hasPublicIp, serverId, cluster, plan }: Placing,
): Promise<{ mac: string | null } | null> {
  const prepared = deps.hypervisors.preparedGuestsOf(cluster.driver);
  try {
    await placeGuest(tx, { clusterId: cluster.id, serverId, room: plan });
    if (!hasPublicIp) return { mac: null };
    const assigned = await assignAddresses(tx, {
      clusterId: cluster.id,
      tenantId,
      serverId,
      preparedSets: prepared.map((guest) => guest.addresses),
    });
    return { mac: assigned.preparedSet === null ? macOf(serverId) : prepared[assigned.preparedSet]!.mac };
  } catch (error) {
    if (!hasCode(error, 'addresses.exhausted') && !hasCode(error, 'clusters.full')) throw error;
    await releaseRoom(tx, serverId);
    return null;
  }
}

async function choose(
  catalog: Catalog,
  input: CreateServerInput,
  faultsBefore: readonly FieldFault[] = [],
): Promise<Choice> {
  const [plans, images, locations] = await Promise.all([
    catalog.listPlans(),
    catalog.listImages(),
    catalog.listLocations(),
  ]);
  const faults = [...faultsBefore];
  const plan = pick(plans, input.plan, 'plan', faults);
  const image = pick(images, input.image, 'image', faults);
  let location: Location | undefined;
  if (input.location === undefined && locations.length === 1) location = locations[0];
  else if (input.location === undefined)
    faults.push({
      path: 'location',
      code: 'required',
      message: 'Name the location.',
      allowed: locations.map((one) => one.slug),
    });
  else location = pick(locations, input.location, 'location', faults);
  if (input.billingCycle !== undefined && input.billingCycle !== 'hourly') {
    throw new CodedError(
      'servers.invalid',
      'Servers are billed hourly here; other cycles are ordered in the portal.',
      {
        reason: 'billing_cycle_not_supported',
        fields: [
          { path: 'billing_cycle', code: 'unknown_value', message: 'must be "hourly"', allowed: ['hourly'] },
        ] satisfies FieldFault[],
      },
    );
  }
  if (faults.length > 0 || !plan || !image || !location) {
    throw new CodedError('servers.invalid', 'Some fields are not as they must be; see `fields`.', {
      fields: faults,
    });
  }
  return { plan, image, locationId: location.id, clusters: await catalog.listClusters(location.id) };
}

function pick<T extends { id: number; slug: string }>(
  offered: readonly T[],
  wanted: string | number,
  path: string,
  faults: FieldFault[],
): T | undefined {
  const found = offered.find((one) => one.slug === wanted || String(one.id) === String(wanted));
  if (!found) {
    const allowed = offered.map((one) => one.slug);
    faults.push({ path, code: 'unknown_value', message: `There is no such ${path}.`, allowed });
  }
  return found;
}

/** A host name out of a free name; what can't serve as one falls back to the server's id. */
function hostnameOf(name: string, id: number): string {
  const plain = name
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
    .slice(0, 63);
  return /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(plain) ? plain : `server-${id}`;
}
