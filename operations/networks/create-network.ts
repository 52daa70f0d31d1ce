/** Makes a network: the policy for blocks, the account's cap, and one block for each moment. */
import { CodedError } from '#common/errors/index.ts';
import { type Actor, reachesTenant, requireWriter } from '#operations/accounts/index.ts';
import type { Catalog } from '#operations/catalog/index.ts';
import { parseNetworkBridges } from '#operations/hypervisors/index.ts';
import { findNetwork, listNetworkBridges, type Network } from '#operations/views/network-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { enqueueJob } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { NetworksDeps } from './index.ts';
import {
  allowedCidr,
  cidrNotAllowed,
  cidrOverlap,
  invalidField,
  limitExceeded,
  nextFreeCidr,
  noSuchNetwork,
  validateNetworkFields,
} from './network.ts';
import * as store from './store.ts';

export interface CreateNetworkInput {
  tenantId: number;
  name: string;
  /** Absent: the next free block of the portal's policy. */
  cidr?: string | undefined;
  /** Slug or id; may be left out where there is one location only. */
  location?: string | number | undefined;
  description?: string | null | undefined;
  labels?: Readonly<Record<string, string>> | undefined;
}

/** Called in the transaction that makes the network. */
export type OnCreated = (tx: Queryable, networkId: number) => Promise<void>;

/**
 * Throws `networks.cidr_not_allowed`, `networks.cidr_overlap`, `networks.limit` and `networks.invalid`. The segment is
 * made by a job, so the answer's `syncState` is `pending`.
 */
export async function createNetwork(
  deps: NetworksDeps,
  actor: Actor,
  input: CreateNetworkInput,
  onCreated?: OnCreated,
): Promise<Network> {
  if (!reachesTenant(actor, input.tenantId)) throw noSuchNetwork();
  requireWriter(actor);
  validateNetworkFields(input);
  const locationId = await chooseLocation(deps.catalog, input.location);
  const wanted = input.cidr === undefined ? null : allowedCidr(input.cidr);
  if (input.cidr !== undefined && wanted === null) throw cidrNotAllowed(input.cidr);
  try {
    const id = await inTransaction(deps.db(), async (tx) => {
      const blocks = await store.lockBlocks(tx, input.tenantId);
      if (blocks.length >= deps.networksMax) {
        throw limitExceeded(
          'networks',
          deps.networksMax,
          blocks.length,
          `This account has ${blocks.length} of ${deps.networksMax} private networks. Delete one, or ask us for more.`,
        );
      }
      const cidr = wanted ?? nextFreeCidr(blocks);
      if (cidr === null) throw cidrOverlap('Every block of the default policy');
      const networkId = await store.insertNetwork(tx, {
        tenantId: input.tenantId,
        locationId,
        segment: await chooseSegment(tx, locationId),
        name: input.name,
        description: input.description ?? null,
        cidr,
        labels: input.labels ?? {},
      });
      await enqueueJob(tx, 'networks.sync', { network_id: networkId, location_id: locationId });
      await onCreated?.(tx, networkId);
      await record(tx, actor, {
        operation: 'network.create',
        subject: { kind: 'network', id: networkId, name: input.name },
        tenantId: input.tenantId,
        after: { name: input.name, cidr, locationId, labels: input.labels ?? {} },
      });
      return networkId;
    });
    deps.wake();
    return (await findNetwork(deps.db(), 'all', id)) ?? Promise.reject(noSuchNetwork());
  } catch (error) {
    if (isOverlap(error)) throw cidrOverlap(wanted ?? 'The block');
    throw error;
  }
}

/** A number that every node with bridges for private networks has a bridge for; null where no node has any. */
async function chooseSegment(tx: Queryable, locationId: number): Promise<number | null> {
  const ranges = (await listNetworkBridges(tx, locationId)).map((pattern) => parseNetworkBridges(pattern)!);
  if (ranges.length === 0) return null;
  const first = Math.max(...ranges.map((range) => range.first));
  const last = Math.min(...ranges.map((range) => range.last));
  const segment = await store.reserveSegment(tx, locationId, { first, last });
  if (segment !== null) return segment;
  const count = Math.max(0, last - first + 1);
  throw limitExceeded(
    'networks_of_location',
    count,
    count,
    'This location has no room for another private network right now. Choose another one, or ask us.',
  );
}

/** The exclusion constraint is the rule; no query before it could be sure. */
function isOverlap(error: unknown): boolean {
  const fault = error as { code?: unknown; constraint?: unknown } | null;
  return fault?.code === '23P01' && fault.constraint === 'private_networks_overlap';
}

async function chooseLocation(catalog: Catalog, wanted: string | number | undefined): Promise<number> {
  const locations = await catalog.listLocations();
  const allowed = locations.map((one) => one.slug);
  if (wanted === undefined) {
    if (locations.length === 1) return locations[0]!.id;
    throw invalidField('location', 'required', 'Name the location.', allowed);
  }
  const found = locations.find((one) => one.slug === wanted || String(one.id) === String(wanted));
  if (found) return found.id;
  throw invalidField('location', 'unknown_value', 'There is no such location.', allowed);
}

/** Thrown where a request names what never changes. */
export function immutableField(path: string): CodedError {
  return new CodedError(
    'networks.immutable',
    `The ${path} of a network can't be changed. Make another network.`,
    { fields: [{ path, code: 'immutable', message: "can't be changed" }] },
  );
}
