/**
 * Orders one hourly-billed server: eligibility, order, addresses, the server's row and its provisioning job, all in one
 * transaction, so that whatever was answered is what will happen, also after a crash.
 */
import { randomInt } from 'node:crypto';
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { assignAddresses } from '#operations/addresses/index.ts';
import {
  type AccessRefusal,
  describeRefusal,
  judgeDeployment,
  lockAccess,
} from '#operations/billing/index.ts';
import type { Catalog, Cluster, Image, Location, Plan } from '#operations/catalog/index.ts';
import { placeGuest, releaseRoom } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { requester, requireWrite } from './authorise.ts';
import type { ServersDeps } from './index.ts';
import { macOf } from './server.ts';
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
}

export interface CreateServerResult {
  serverId: number;
  orderId: number;
  /** As it stands on the order; for the answer to this call alone. */
  rootPassword: string;
  deploys: DeployBudget;
}

export interface DeployBudget {
  limit: number;
  used: number;
  resetSeconds: number;
}

/** A field that names nothing we have; goes out as one entry of a 422. */
export interface FieldFault {
  path: string;
  code: string;
  message: string;
  allowed?: (string | number)[];
}

interface Choice {
  plan: Plan;
  image: Image;
  clusters: Cluster[];
}

/**
 * Throws `servers.invalid` (details.fields), `servers.not_eligible` (details.refusal), `servers.deploy_rate`
 * (details.deploys), `servers.capacity` and `accounts.forbidden`. Nothing is ordered when it throws.
 */
export async function createServer(
  deps: ServersDeps,
  actor: Actor,
  input: CreateServerInput,
): Promise<CreateServerResult> {
  requireWrite(actor, input.tenantId);
  const choice = await choose(deps.catalog, input);
  const result = await deps
    .db()
    .transaction()
    .execute(async (tx) => {
      // The lock on the balance makes creates of one account wait for each other, so neither the credit rule nor the
      // hourly cap can be slipped past by calling many times at once.
      const facts = await lockAccess(tx, input.tenantId);
      const refusal = facts === null ? null : judgeDeployment(facts);
      if (facts === null || refusal !== null) throw notEligible(refusal);
      const deploys = await requireDeployBudget(deps, tx, input.tenantId);
      const rootPassword = newRootPassword();
      const orderId = await store.insertOrder(tx, {
        tenantId: input.tenantId,
        planId: choice.plan.id,
        dueQuanta: 0,
        rootPassword,
      });
      const serverId = await insertServer(deps, tx, input, choice, orderId);
      await store.insertAction(tx, { serverId, command: 'create', ...requester(actor) });
      await enqueueJob(tx, 'servers.provision', { server_id: serverId });
      await emit(tx, { type: 'server.created', serverId });
      return { serverId, orderId, rootPassword, deploys };
    });
  deps.wake();
  return result;
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
      });
    } else {
      await store.moveServer(tx, id, cluster.id);
    }
    const mac = await tryCluster(deps, tx, { tenantId: input.tenantId, serverId: id, cluster, plan });
    if (mac === null) continue;
    await store.insertInterface(tx, id, mac);
    return id;
  }
  throw new CodedError(
    'servers.capacity',
    'There is no room for another server in this location right now. Try again later.',
  );
}

/** Gives the server room and addresses in this cluster; returns the MAC that goes with them, or null when it is full. */
async function tryCluster(
  deps: ServersDeps,
  tx: Queryable,
  { tenantId, serverId, cluster, plan }: { tenantId: number; serverId: number; cluster: Cluster; plan: Plan },
): Promise<string | null> {
  const prepared = deps.hypervisors.preparedGuestsOf(cluster.driver);
  try {
    await placeGuest(tx, { clusterId: cluster.id, serverId, room: plan });
    const assigned = await assignAddresses(tx, {
      clusterId: cluster.id,
      tenantId,
      serverId,
      preparedSets: prepared.map((guest) => guest.addresses),
    });
    return assigned.preparedSet === null ? macOf(serverId) : prepared[assigned.preparedSet]!.mac;
  } catch (error) {
    if (!hasCode(error, 'addresses.exhausted') && !hasCode(error, 'clusters.full')) throw error;
    await releaseRoom(tx, serverId);
    return null;
  }
}

async function requireDeployBudget(
  deps: ServersDeps,
  tx: Queryable,
  tenantId: number,
): Promise<DeployBudget> {
  const limit = deps.deploysPerHour;
  const { used, resetSeconds } = await store.countRecentOrders(tx, tenantId);
  if (used < limit) return { limit, used: used + 1, resetSeconds };
  throw new CodedError(
    'servers.deploy_rate',
    `This account has deployed ${limit} servers within an hour. Try again in ${resetSeconds} seconds.`,
    { deploys: { limit, used, resetSeconds } satisfies DeployBudget },
  );
}

async function choose(catalog: Catalog, input: CreateServerInput): Promise<Choice> {
  const [plans, images, locations] = await Promise.all([
    catalog.listPlans(),
    catalog.listImages(),
    catalog.listLocations(),
  ]);
  const faults: FieldFault[] = [];
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
    throw new CodedError('servers.invalid', 'Some fields name nothing that can be ordered.', {
      fields: faults,
    });
  }
  return { plan, image, clusters: await catalog.listClusters(location.id) };
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

function notEligible(refusal: AccessRefusal | null): CodedError {
  if (refusal === null) return new CodedError('servers.not_found', 'There is no such account.');
  return new CodedError('servers.not_eligible', describeRefusal(refusal), { refusal });
}

/** 20 characters without look-alikes: about 115 bits. */
function newRootPassword(): string {
  const alphabet = 'abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789';
  return Array.from({ length: 20 }, () => alphabet[randomInt(alphabet.length)]).join('');
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
