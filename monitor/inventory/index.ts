/**
 * The inventory of virtual machines: imported from operations by pages, and the teardown of destroyed machines.
 *
 * An import counts only as a whole. A machine ends by a signed notice or by an import that no longer lists it, with the
 * same teardown. Tombstones of notices prevent an earlier listing from restoring it (NET-4.7). Notices are applied even
 * while the connection is disabled.
 *
 * After each import it reads what the inventory does not show of servers (firewall, networks, restarts), for the flags of charts.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { isSpoken, takes } from '#contracts/admin-api/contract.ts';
import { inventoryChangesFlag } from '#contracts/admin-api/inventory-changes.ts';
import { inventoryContract } from '#contracts/admin-api/schemas.ts';
import type { DestroyNotice } from '#contracts/destroy-notice/index.ts';
import {
  type Connection,
  type OpenConnection,
  OperationsError,
  safeFaultText,
} from '#monitor/operations-client/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import {
  listServerChanges,
  listToldChanges,
  type ServerChangesAsked,
} from '#monitor/views/server-history-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { createLeasedLoop } from '#service-kit/leases/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import { type ImportDeps, importChanges, importInventory } from './import-inventory.ts';
import { applyNotice } from './retire-machines.ts';
import * as store from './store.ts';
import { listNodeServers } from './store.ts';

export { inventoryStaleMs } from './import-inventory.ts';
export type { ClusterCount, ImportState, NodeServer } from './store.ts';

export type Inventory = ReturnType<typeof createInventory>;

/**
 * Result of a requested import: done, no enabled connection, another import running, or the fixed sentence of its
 * error.
 */
export type SyncResult =
  | { outcome: 'imported' | 'not_enabled' | 'running' }
  | { outcome: 'failed'; error: string };

interface InventoryDeps extends ImportDeps {
  connection: Connection;
  clock: Clock;
  reporter: Reporter;
  intervalSeconds: number;
}

const leaseSeconds = 60;
const capabilitiesKeptMs = 5 * 60_000;

export function createInventory(deps: InventoryDeps) {
  // An import was requested, which also runs when automatic import is off.
  let isAsked = false;
  const loop = createLeasedLoop({
    name: 'import_inventory',
    intervalMs: deps.intervalSeconds * 1000,
    ttlSeconds: leaseSeconds,
    db: deps.db,
    clock: deps.clock,
    reporter: deps.reporter,
    async run(lease, renew) {
      const open = await deps.connection.open();
      if (!open || !(open.isSyncAutomatic || isAsked)) return null;
      try {
        const checked = await checkCapabilities(deps, open);
        const counts = await importInventory(deps, checked.client, lease, renew);
        if (!counts) return null;
        if (hasTeardown(counts)) deps.reporter.info('machines gone from the inventory', counts);
        await importChanges(deps.db(), checked, lease, renew);
        return null;
      } catch (error) {
        const text = safeFaultText(error);
        await store.writeFailure(deps.db(), text);
        if (!(error instanceof OperationsError)) throw error;
        deps.reporter.warn('inventory not imported', { error: describeError(error) });
        return text;
      }
    },
  });
  return {
    /** The loop that imports every `intervalSeconds`, unless automatic import is off. */
    loop,
    /** Imports now (NET-4.9). */
    async syncNow(actor: Actor): Promise<SyncResult> {
      requireOperator(actor);
      if (!(await deps.connection.open())) return { outcome: 'not_enabled' };
      await inTransaction(deps.db(), (trx) =>
        record(trx, actor, {
          operation: 'inventory.import',
          subject: { kind: 'connection', id: 'operations' },
        }),
      );
      isAsked = true;
      try {
        if (!(await loop.runOnce())) return { outcome: 'running' };
      } finally {
        isAsked = false;
      }
      const { lastError } = await store.readState(deps.db());
      return lastError === null ? { outcome: 'imported' } : { outcome: 'failed', error: lastError };
    },
    /** Applies a notice with a verified signature. */
    applyNotice: (notice: DestroyNotice) => applyNotice(deps, notice),
    /** Last run, last success, last error, counts. */
    state: () => store.readState(deps.db()),
    /** All clusters ever listed, for mapping them to sites. */
    listClusters: () => store.listClusters(deps.db()),
    /** Live servers of these clusters on a node, by name. */
    listNodeServers: (clusterIds: readonly number[], node: string, limit: number) =>
      listNodeServers(deps.db(), clusterIds, node, limit),
    /** What became of a site's servers in a range, newest first: listed, moved to another node, gone. */
    listServerChanges: (asked: ServerChangesAsked, limit: number) =>
      listServerChanges(deps.db(), asked, limit),
    /** What operations told of a site's servers beside the inventory, newest first: firewalls, networks, restarts. */
    listToldChanges: (asked: ServerChangesAsked, limit: number) => listToldChanges(deps.db(), asked, limit),
  };
}

/**
 * Runs discovery again when the last one lacked the permission, which may have been granted since, and now and then when it
 * lacked the list of changes: operations may have been upgraded. Throws without the permission.
 */
async function checkCapabilities(
  { connection, clock }: Pick<InventoryDeps, 'connection' | 'clock'>,
  open: OpenConnection,
): Promise<OpenConnection> {
  if (isSpoken(open.capabilities, inventoryContract)) {
    const isFresh = open.checkedAtMs !== null && clock.nowMs() - open.checkedAtMs < capabilitiesKeptMs;
    if (isFresh || takes(open.capabilities, inventoryContract, inventoryChangesFlag)) return open;
  }
  await connection.check();
  const now = await connection.open();
  if (!now || !isSpoken(now.capabilities, inventoryContract)) throw new OperationsError('permission_missing');
  return now;
}

function hasTeardown(counts: store.ImportCounts): boolean {
  return (counts.destroyed_applied ?? 0) > 0 || (counts.devices_archived ?? 0) > 0;
}
