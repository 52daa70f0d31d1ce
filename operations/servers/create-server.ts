/**
 * Orders one hourly-billed server. The order and its payment are the orders feature's; what a server needs is held before
 * the payment (`hold-server.ts`) and becomes the server after it (`queue-server.ts`).
 */
import { CodedError } from '#common/errors/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Location } from '#operations/catalog/index.ts';
import { listClusters } from '#operations/clusters/index.ts';
import type { DeployBudget, OrderForecast, OrderWork } from '#operations/ordering/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { requester, requireWrite } from './authorise.ts';
import type { ServersDeps } from './deps.ts';
import { holdServer, releaseServer } from './hold-server.ts';
import { orderFaults } from './order-faults.ts';
import type { Choice, CreateServerInput, OrderRequest } from './order-request.ts';
import { queueServer } from './queue-server.ts';
import type { FieldFault } from './server-faults.ts';

export interface CreateServerResult {
  serverId: number;
  orderId: number;
  /** As it stands on the order; for the answer to this call alone. */
  rootPassword: string;
  deploys: DeployBudget;
}

/** Called in the transaction that creates the order, so that a repeated call finds it. */
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

/**
 * Throws `servers.invalid` (details.fields), `orders.not_eligible` (details.refusal), `orders.deploy_rate`
 * (details.deploys), `servers.capacity`, `accounts.forbidden` and for the network what `holdNetwork` throws: nothing is
 * ordered or charged then. Throws `orders.payment_failed` (details.failure) when the card had to be charged and that did
 * not succeed, and `orders.refused` (details.refusal) when the charge was given back.
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
  const choice = await choose(deps, input, orderFaults(input));
  // A network of another account is told before anything about credit; the hold asks again.
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
    work: orderWork(deps, actor, choice),
  };
  return { order, plan: choice.plan };
}

/** The steps of an order. Without a choice, as for a process that died, the stored request is looked up again. */
export function orderWork(deps: ServersDeps, actor: Actor, choice?: Choice): OrderWork {
  return {
    async hold(tx, order) {
      const { input } = order.request as unknown as OrderRequest;
      return { ...(await holdServer(deps, tx, input, choice ?? (await choose(deps, input)))) };
    },
    queue: (tx, order) => queueServer(tx, actor, order),
    release: (tx, held) => releaseServer(tx, held),
  };
}

async function choose(
  deps: ServersDeps,
  input: CreateServerInput,
  faultsBefore: readonly FieldFault[] = [],
): Promise<Choice> {
  const [plans, images, locations] = await Promise.all([
    deps.catalog.listPlans(),
    deps.catalog.listImages(),
    deps.catalog.listLocations(),
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
  if (faults.length > 0 || !plan || !image || !location) {
    throw new CodedError('servers.invalid', 'Some fields are not as they must be; see `fields`.', {
      fields: faults,
    });
  }
  return { plan, image, locationId: location.id, clusters: await listClusters(deps.db(), location.id) };
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
