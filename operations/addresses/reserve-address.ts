/** Addresses that an account keeps: reserves, renames and releases them. Servers get and lose them in `operations/servers`. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { type Actor, lockTenantStatus, reachesTenant, requireWriter } from '#operations/accounts/index.ts';
import { listClusters } from '#operations/clusters/index.ts';
import { emit } from '#operations/events/index.ts';
import { listOfferedLocations } from '#operations/views/location-store.ts';
import {
  findReserved,
  listReserved,
  type ReservedAddress,
} from '#operations/views/reserved-address-store.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { drawAddress } from './assign-addresses.ts';
import type { AddressesDeps } from './index.ts';
import * as store from './reserved-store.ts';
import { forgetNames } from './reverse-name-store.ts';
import { lockPools } from './store.ts';

export interface ReserveInput {
  tenantId: number;
  /** Default: the address. */
  name?: string | undefined;
  /** Slug or id; absent where there is one. */
  location?: string | number | undefined;
  /** Default 4. */
  family?: 4 | 6 | undefined;
  /** One that a server of the workspace has; without `location` and `family`. */
  address?: string | undefined;
}

/** Called inside the transaction of a change, before it is made or once it is; what it throws undoes the change. */
export type InTransaction = (tx: Queryable, address: ReservedAddress) => Promise<void>;

const namePattern = new RegExp(schemas.namePattern, 'u');

/**
 * Throws `addresses.invalid` (details.field), `addresses.kept` (details.id), `addresses.limit`, `addresses.exhausted`,
 * `addresses.not_found` for a workspace that the actor does not reach.
 */
export async function reserveAddress(
  deps: AddressesDeps,
  actor: Actor,
  input: ReserveInput,
  onReserved?: InTransaction,
): Promise<ReservedAddress> {
  const { tenantId, name } = input;
  requireWrite(actor, tenantId);
  if (name !== undefined) requireName(name);
  const place = input.address === undefined ? await choosePlace(deps, input) : null;
  return inTransaction(deps.db(), async (tx) => {
    if ((await lockTenantStatus(tx, tenantId)) === 'CLOSED') throw notFound();
    const used = await store.lockReservedCount(tx, tenantId);
    if (used >= deps.addressesMax)
      throw new CodedError(
        'addresses.limit',
        `This workspace keeps ${used} of ${deps.addressesMax} addresses. Release one, or ask us for more.`,
        { limit: 'addresses', max: deps.addressesMax, used },
      );
    const found = place === null ? await takeHeld(tx, input) : await drawFree(deps, tx, place);
    const named = name === undefined ? {} : { name };
    const id = await store.insertReserved(tx, { tenantId, ...found, ...named });
    // Inserting has locked the server, as its destruction does first; it may have come before.
    if (place === null && (await store.findHeldAddress(tx, tenantId, found.address, true)) === null)
      throw notHeld();
    const address = (await findReserved(tx, tenantId, id))!;
    await onReserved?.(tx, address);
    await emit(tx, { type: 'address.reserved', addressId: id, serverId: address.serverId });
    await record(tx, actor, {
      operation: 'address.reserve',
      subject: { kind: 'address', id, name: address.name },
      tenantId,
      after: { address: address.address, location: address.locationSlug, serverId: address.serverId },
    });
    return address;
  });
}

interface Place {
  family: 4 | 6;
  clusters: readonly { id: number; driver: string }[];
}

async function choosePlace({ db }: AddressesDeps, { location, family = 4 }: ReserveInput): Promise<Place> {
  const offered = await listOfferedLocations(db());
  const allowed = offered.map(({ slug }) => slug).join(', ');
  if (location === undefined && offered.length > 1)
    throw invalid('location', `Name the location: ${allowed}.`);
  const found = offered.find(
    ({ id, slug }) => location === undefined || location === id || location === slug,
  );
  if (found === undefined) throw invalid('location', `There is no such location. There are: ${allowed}.`);
  return { family, clusters: await listClusters(db(), found.id) };
}

/** Of the first cluster of the location that has one. Addresses of guests that stand already are left to their servers. */
async function drawFree({ hypervisors }: AddressesDeps, tx: Queryable, { family, clusters }: Place) {
  for (const { id: clusterId, driver } of clusters) {
    const pools = (await lockPools(tx, clusterId)).filter((pool) => pool.family === family);
    const prepared = hypervisors.preparedGuestsOf(driver).flatMap(({ addresses }) => addresses);
    const drawn = await drawAddress(tx, pools, prepared);
    if (drawn !== null) return { poolId: drawn.pool.id, clusterId, address: drawn.address, serverId: null };
  }
  throw new CodedError('addresses.exhausted', `This location has no free IPv${family} address right now.`);
}

async function takeHeld(tx: Queryable, { tenantId, address: text = '', location, family }: ReserveInput) {
  if (location !== undefined || family !== undefined)
    throw invalid(
      location === undefined ? 'family' : 'location',
      'Leave it out: the address has it already.',
    );
  const address = canonicalAddress(text);
  const held = address === null ? null : await store.findHeldAddress(tx, tenantId, address);
  if (address === null || held === null) throw notHeld();
  if (held.keptAs !== null)
    throw new CodedError('addresses.kept', 'This workspace keeps this address already.', { id: held.keptAs });
  const { poolId, clusterId, serverId } = held;
  return { poolId, clusterId, serverId, address };
}

/** Throws `addresses.not_found`, `addresses.invalid`. */
export async function renameAddress(
  { db }: AddressesDeps,
  actor: Actor,
  { tenantId, id, name }: { tenantId: number; id: number; name: string },
  precondition?: InTransaction,
): Promise<ReservedAddress> {
  requireWrite(actor, tenantId);
  requireName(name);
  return inTransaction(db(), async (tx) => {
    const before = await requireReserved(tx, tenantId, id);
    await precondition?.(tx, before);
    await store.renameReserved(tx, tenantId, id, name);
    await record(tx, actor, {
      operation: 'address.update',
      subject: { kind: 'address', id, name: before.name },
      tenantId,
      ...changedMembers({ name: before.name }, { name }),
    });
    return (await findReserved(tx, tenantId, id))!;
  });
}

/**
 * Throws `addresses.not_found`, and `addresses.attached` (details.serverId) for one that its server was not deployed with: it
 * would go on with an address beyond the limit.
 */
export async function releaseAddress(
  { db }: AddressesDeps,
  actor: Actor,
  { tenantId, id }: { tenantId: number; id: number },
  precondition?: InTransaction,
): Promise<void> {
  requireWrite(actor, tenantId);
  await inTransaction(db(), async (tx) => {
    const found = await requireReserved(tx, tenantId, id);
    await precondition?.(tx, found);
    const { serverId, state, cameWithServer } = found;
    if (serverId !== null && !(cameWithServer && state === 'attached')) throw attached(serverId);
    await release(tx, actor, found);
  });
}

async function release(tx: Queryable, actor: Actor, found: ReservedAddress): Promise<void> {
  const { id, tenantId, serverId, address, name } = found;
  await emit(tx, { type: 'address.released', addressId: id, serverId });
  await store.deleteReserved(tx, tenantId, id);
  await record(tx, actor, {
    operation: 'address.release',
    subject: { kind: 'address', id, name },
    tenantId,
    before: { address, serverId },
  });
}

/** Releases all that an account without servers keeps; it is being closed, and its row is locked. */
export async function releaseKeptAddresses(tx: Queryable, actor: Actor, tenantId: number): Promise<void> {
  for (const found of await listReserved(tx, tenantId)) await release(tx, actor, found);
}

/** With its row locked. Throws `addresses.not_found`. */
export async function requireReserved(tx: Queryable, tenantId: number, id: number): Promise<ReservedAddress> {
  const found = await store.lockReserved(tx, tenantId, id);
  if (found === null) throw notFound();
  return found;
}

/** Ends the generations of these kept addresses that the server has, or of all. `tx` is the transaction in which it loses them. */
export async function endAttachments(tx: Queryable, serverId: number, ids: readonly number[] | 'all') {
  const ended = await store.endAttachments(tx, serverId, ids);
  for (const { id: addressId } of ended) await emit(tx, { type: 'address.detached', addressId, serverId });
  await forgetNames(tx, ended);
}

function requireWrite(actor: Actor, tenantId: number): void {
  if (!reachesTenant(actor, tenantId)) throw notFound();
  requireWriter(actor);
}

function requireName(name: string): void {
  if (name.length < 1 || [...name].length > 64 || !namePattern.test(name))
    throw invalid(
      'name',
      'A name has 1 to 64 characters, without spaces around them and without control characters.',
    );
}

/** `addresses.attached`: a server has the address. */
export const attached = (serverId: number) =>
  new CodedError('addresses.attached', `Server ${serverId} has this address. Detach it first.`, { serverId });
const invalid = (field: string, message: string) => new CodedError('addresses.invalid', message, { field });
const notHeld = () => invalid('address', 'No server of this workspace has this address.');
const notFound = () => new CodedError('addresses.not_found', 'There is no such address.');
