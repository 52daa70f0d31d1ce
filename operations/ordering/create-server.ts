/**
 * Orders one hourly-billed server, forecasts such an order, and finds what came of one. What it needs is held before the
 * payment and becomes the server after it (`hold-server.ts`).
 */

import { CodedError } from '#common/errors/index.ts';
import { type Actor, reachesTenant } from '#operations/accounts/index.ts';
import type { Image, Plan } from '#operations/catalog/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import {
  type FieldFault,
  type RequestedServer,
  type Requester,
  requester,
  requireWrite,
  serverNotFound,
  validateServerFields,
} from '#operations/servers/index.ts';
import { publicKeyHint } from '#operations/ssh-keys/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { chooseServer, serverWork } from './hold-server.ts';
import type { OrderingDeps } from './index.ts';
import type { DeployBudget, NewOrder, OrderForecast, PaymentFailure } from './place-order.ts';
import { orderRefused } from './queue-order.ts';

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

/**
 * Throws `servers.invalid` (details.fields), `orders.not_eligible` (details.refusal), `orders.deploy_rate`
 * (details.deploys), `servers.capacity`, `accounts.forbidden` and for the network what `holdNetwork` throws: nothing is
 * ordered or charged then. Throws `orders.payment_failed` (details.failure) when the card had to be charged and that did
 * not succeed, and `orders.refused` (details.refusal) when the charge was given back.
 */
export async function createServer(
  deps: OrderingDeps,
  actor: Actor,
  input: CreateServerInput,
  { onOrdered, checkout }: OrderingOptions = {},
): Promise<CreateServerResult> {
  const { order } = await prepareOrder(deps, actor, input);
  const { tenantId, plan, image, snapshotId } = input;
  const onPlaced: OnOrdered = async (tx, orderId) => {
    await onOrdered?.(tx, orderId);
    const subject = { kind: 'order', id: orderId };
    await record(tx, actor, {
      operation: 'order.place',
      subject,
      tenantId,
      after: { plan, image, snapshotId },
    });
  };
  const placed = await deps.orders.placeOrder({ ...order, onOrdered: onPlaced, checkout });
  deps.wake();
  return placed;
}

/**
 * The order that an input stands for, after everything that can be checked without a transaction: the actor's right, the
 * fields, the catalog and the network.
 */
async function prepareOrder(
  deps: OrderingDeps,
  actor: Actor,
  input: CreateServerInput,
): Promise<{ order: NewOrder; plan: Plan }> {
  const { tenantId, networkId, networkIp: ip } = input;
  requireWrite(actor, tenantId);
  const { sshKeys, faults } = await resolveSshKeys(deps, input);
  const choice = await chooseServer(deps, input, [...orderFaults(input), ...faults]);
  // A network of another account is told before anything about credit; the hold asks again.
  if (networkId !== undefined)
    await deps.networks.checkJoin({ tenantId, locationId: choice.locationId }, { networkId, ip });
  const request: OrderRequest = { input: { ...input, sshKeys }, requester: requester(actor) };
  const { plan } = choice;
  return { order: { tenantId, plan, request: { ...request }, work: serverWork(deps, actor, choice) }, plan };
}

/** What is wrong with an order by itself, before anything is looked up. */
function orderFaults(input: CreateServerInput): FieldFault[] {
  return [...sourceFaults(input), ...networkFaults(input), ...validateServerFields(input)];
}

/**
 * The order's keys as lines of `authorized_keys`. A private key pasted by mistake, or half of a public one, would only be
 * noticed at the first failed sign-in.
 */
async function resolveSshKeys(deps: OrderingDeps, { tenantId, sshKeys = [] }: CreateServerInput) {
  const lines = await deps.sshKeys.resolveKeys(tenantId, sshKeys);
  const faults = lines.flatMap((line, index): FieldFault[] => {
    if (line !== null) return [];
    const path = `ssh_keys.${index}`;
    return typeof sshKeys[index] === 'number'
      ? [{ path, code: 'unknown_value', message: 'There is no such SSH key.' }]
      : [{ path, code: 'pattern', message: `${publicKeyHint}, or the name of a key of the workspace` }];
  });
  return { sshKeys: lines.filter((line) => line !== null), faults };
}

function sourceFaults({ image, snapshotId }: CreateServerInput): FieldFault[] {
  if (image === undefined && snapshotId === undefined)
    return [{ path: 'image', code: 'required', message: 'is required, or `snapshot` in its place' }];
  if (image === undefined || snapshotId === undefined) return [];
  return [{ path: 'snapshot', code: 'conflict', message: 'stands in place of `image`: give one of them' }];
}

function networkFaults(input: CreateServerInput): FieldFault[] {
  if (input.networkId !== undefined) return [];
  const faults: FieldFault[] = [];
  const required = 'names the network without which nothing would lead to the server';
  if (input.publicIp === false) faults.push({ path: 'network_id', code: 'required', message: required });
  if (input.networkIp !== undefined)
    faults.push({ path: 'network_ip', code: 'required_with', message: 'needs `network_id` beside it' });
  return faults;
}

/** What is ordered, as the order stores it. */
export interface OrderedServer extends RequestedServer {
  /** Slug or id; may be left out where there is one location only. */
  location?: string | number | undefined;
}

/** The input of the call. */
export interface CreateServerInput extends Omit<OrderedServer, 'sshKeys'> {
  /** Public keys as text, or the ids or names of keys that the workspace keeps. */
  sshKeys?: readonly (string | number)[] | undefined;
}

/** What was chosen out of the catalogue. */
export interface Choice {
  plan: Plan;
  image: Pick<Image, 'id'>;
  locationId: number;
  clusters: Cluster[];
  /** Of a server that is made from a snapshot: the node that has it. */
  nodeId?: number | undefined;
}

/** What an order remembers of its call, so that any process can carry it out. */
export interface OrderRequest {
  input: OrderedServer;
  requester: Requester;
}

export interface ServerForecast extends OrderForecast {
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** Credit that is left after a day of this server; null when it would not be made. */
  afterFirstDayQuanta: number | null;
}

/** What `createServer` would do, by the same code and the same refusals; nothing is left of it. */
export async function forecastServer(
  deps: OrderingDeps,
  actor: Actor,
  input: CreateServerInput,
): Promise<ServerForecast> {
  const { order, plan } = await prepareOrder(deps, actor, input);
  const forecast = await deps.orders.forecastOrder(order);
  const { hourlyQuanta, monthlyCapQuanta } = plan;
  const day = Math.min(24 * hourlyQuanta, monthlyCapQuanta);
  const { balanceQuanta, dueQuanta } = forecast;
  const isPlaced = balanceQuanta !== null && dueQuanta !== null;
  const afterFirstDayQuanta = isPlaced ? balanceQuanta + dueQuanta - day : null;
  return { ...forecast, hourlyQuanta, monthlyCapQuanta, afterFirstDayQuanta };
}

/**
 * What an order has come to, told as `createServer` told it: the server, or the refusal of its payment. Throws
 * `idempotency.in_progress` while that is open, and `servers.not_found` for an order of another tenant.
 */
export async function findOrdered(
  deps: OrderingDeps,
  actor: Actor,
  tenantId: number,
  orderId: number,
): Promise<{ serverId: number; rootPassword: string }> {
  const outcome = await deps.orders.findOutcome(orderId);
  if (outcome?.tenantId !== tenantId || !reachesTenant(actor, tenantId)) throw serverNotFound();
  if (outcome.serverId !== null)
    return { serverId: outcome.serverId, rootPassword: await deps.orders.findRootPassword(orderId) };
  if (outcome.state === 'unpaid' && outcome.chargeId !== null) {
    const failure: Omit<PaymentFailure, 'deploys'> = {
      reason: outcome.isDeclined ? 'charge_declined' : 'charge_unconfirmed',
      orderId,
      paymentAttemptId: outcome.chargeId,
    };
    throw new CodedError(
      'orders.payment_failed',
      'The payment of this order failed; no server was ordered.',
      { failure },
    );
  }
  if (outcome.closedReason !== null)
    throw orderRefused({ orderId, paymentAttemptId: outcome.chargeId, cause: outcome.closedReason });
  throw new CodedError(
    'idempotency.in_progress',
    'This order is still being paid. Repeat the call in a moment.',
  );
}
