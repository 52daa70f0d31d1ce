/**
 * Changes of servers that the inventory does not show: the monitor reads them to mark them on its charts. A change says that
 * something happened to a server and when, never what: no rule, no network, no person.
 */
import { type Static, Type } from 'typebox';
import { Id } from '../scalars.ts';

/** A version may add kinds, so a reader leaves out those that it does not know. */
export const inventoryChangeKinds = [
  'firewall',
  'network_attached',
  'network_detached',
  'rebooted',
  'reset',
] as const;
export type InventoryChangeKind = (typeof inventoryChangeKinds)[number];

export const InventoryChange = Type.Object({
  id: Type.String({
    format: 'uuid',
    description: 'Of the change for good, so that a page read twice counts once.',
  }),
  cluster_id: Id,
  virtual_machine_id: Id,
  kind: Type.String({ pattern: '^[a-z_]{1,40}$', description: `One of ${inventoryChangeKinds.join(', ')}.` }),
  at: Type.String({ format: 'date-time', description: 'When the hypervisor had carried it out.' }),
});
export type InventoryChange = Static<typeof InventoryChange>;

/**
 * A page may be empty while `has_more` is true: the cursor walks the changes of all clusters. `next_after` is opaque; it is
 * there also at the end, for the next time.
 */
export const InventoryChangesPage = Type.Object({
  changes: Type.Array(InventoryChange),
  next_after: Type.String({ maxLength: 200 }),
  has_more: Type.Boolean(),
});
export type InventoryChangesPage = Static<typeof InventoryChangesPage>;

export const inventoryChangesPath = '/inventory/changes/';
export const inventoryChangesLimitDefault = 200;
export const inventoryChangesLimitMax = 1000;
/** The flag of the inventory's contract that stands for this list. */
export const inventoryChangesFlag = 'vm_inventory_changes';
