import assert from 'node:assert/strict';
import type { DeliveredScan, ScanRequestUpdate } from '#contracts/admin-api/port-scans.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { World } from './create-world.ts';

export type ScanMonitor = Awaited<ReturnType<typeof createScanMonitor>>;

/** Delivers results of scans as one monitor does, each of which must be accepted. */
export async function createScanMonitor(world: World) {
  const { id: projectId } = await world.adminProjects.create(systemActor, {
    ...{ name: 'monitor of scans', permissions: ['protect_port_scan_ingest'], clusterIds: null },
  });
  const sender = { projectId, clusterIds: null };
  return {
    sender,
    async deliver(...scans: DeliveredScan[]): Promise<void> {
      const { receipts } = await world.protectScans.receive(sender, {
        ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId], results: scans },
      });
      assert.deepEqual(new Set(receipts.map(({ receipt }) => receipt)), new Set(['accepted']));
    },
    /** What it says of a request. */
    async say(id: string, state: ScanRequestUpdate['state'], more: object = {}): Promise<string> {
      const quiet = { started_at: null, heartbeat_at: null, progress: null };
      const { outcomes } = await world.protectScans.updateRequests(sender, {
        ...{ contract_version: 1, source_site_id: 1, updates: [{ id, state, ...quiet, ...more }] },
      });
      return outcomes[0]!.outcome;
    },
  };
}
