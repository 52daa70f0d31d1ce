/**
 * Receivers of feeds: what a monitor delivers through the admin API, each declared once (`operations/receivers.ts`).
 *
 * From the list of receivers follow the routes, what discovery advertises, the permissions that a project may have, and
 * the form that grants them. docs/adding-a-feed.md shows how to add one.
 */
import {
  type AdminContract,
  advertised,
  type Capabilities,
  type FeedContract,
} from '#contracts/admin-api/contract.ts';
import { inventoryContract, projectPermissions, targetPermissions } from '#contracts/admin-api/schemas.ts';

/** Who sends, and what it may speak about. */
export interface Sender {
  projectId: number;
  /** null: all clusters. */
  clusterIds: readonly number[] | null;
}

export interface FeedReceiver {
  /** Permission, capabilities and their version, path, schemas, and the bound of a body. */
  readonly contract: FeedContract;
  /** What the permission allows, in an operator's words. */
  readonly hint: string;
  /** True where a project needs the allocation targets for it. */
  readonly readsTargets: boolean;
  /**
   * The code of an error about content that the schema can't see; its `details.fields` name the fields of the 422. Other
   * errors are faults of operations.
   */
  readonly invalidCode?: string;
  /**
   * Stores what belongs to the sender and answers after the commit, with a receipt for each record in the order sent. The
   * request fits the contract's schema, so it is of that type; ownership is for the receiver to check.
   */
  receive(sender: Sender, request: unknown): Promise<unknown>;
}

/** A permission that an operator may grant, and what it is for. */
export interface GrantablePermission {
  permission: string;
  hint: string;
}

const inventory: { contract: AdminContract; hint: string } = {
  contract: inventoryContract,
  hint: 'Read servers, their network interfaces and addresses, and when they changed.',
};

/** What the form of a project offers: permissions whose endpoints are there. */
export function listGrantable(receivers: readonly FeedReceiver[]): GrantablePermission[] {
  return [inventory, ...receivers].map(({ contract, hint }) => ({ permission: contract.permission, hint }));
}

/** What a project may do, as discovery says it: a permission whose endpoint is not there is not advertised. */
export function capabilitiesOf(
  receivers: readonly FeedReceiver[],
  permissions: readonly string[],
): Capabilities {
  const contracts = [inventory, ...receivers].map(({ contract }) => contract);
  const allowed = contracts.filter(({ permission }) => permissions.includes(permission));
  return Object.assign({}, ...allowed.map(advertised));
}

/** Every permission that a project may have, also those of feeds that this version does not receive. */
export function listPermissions(receivers: readonly FeedReceiver[]): string[] {
  return [...new Set([...projectPermissions, ...receivers.map(({ contract }) => contract.permission)])];
}

/** Permissions each of which lets a project read the allocation targets; a refusal names the first. */
export function listTargetPermissions(receivers: readonly FeedReceiver[]): [string, ...string[]] {
  const [first, ...others] = targetPermissions;
  const ofReceivers = receivers.filter(({ readsTargets }) => readsTargets);
  return [first, ...new Set([...others, ...ofReceivers.map(({ contract }) => contract.permission)])];
}
