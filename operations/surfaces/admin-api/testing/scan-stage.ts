/** A monitor of the admin API that fetches scan requests and delivers results, and customers with servers that it scans. */
import assert from 'node:assert/strict';
import type {
  DeliveredScan,
  PortScanReceipts,
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdate,
} from '#contracts/admin-api/port-scans.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { loopOf } from '#operations/testing/loop-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

export type ScanStage = Awaited<ReturnType<typeof createScanStage>>;
export type Reader = Awaited<ReturnType<typeof createReader>>;

export const quiet = { started_at: null, heartbeat_at: null, progress: null };
export const startedNow = () => ({ started_at: secondsAgo(5), heartbeat_at: secondsAgo(5), progress: 1 });

/** A customer with a server whose addresses were assigned two hours ago. */
async function createReader(world: World, name: string) {
  const customer = await world.createCustomer(name);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase().replaceAll(' ', '-'));
  await world.backdate(serverId, '2 hours');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const subject = { serverId, tenantId: customer.tenant.id };
  const first = allocations[0]!;
  return { ...customer, serverId, subject, actor: ownerOf(customer), allocations, first };
}

export async function createScanStage() {
  const world = await createWorld();
  const token = await world.createToken(['protect_port_scan_ingest']);
  const url = (path: string) => `${world.url}/api/admin/v1/protect/${path}`;
  const headers = (bearer = token) => ({
    authorization: `Bearer ${bearer}`,
    'content-type': 'application/json',
  });

  async function fetchPage(query = '', bearer = token): Promise<ScanRequestsPage> {
    const answer = await fetch(url(`scan-requests/${query}`), { headers: headers(bearer) });
    assert.equal(answer.status, 200, await answer.clone().text());
    return (await answer.json()) as ScanRequestsPage;
  }

  const postUpdates = (updates: readonly unknown[], site = 7, bearer = token) =>
    fetch(url('scan-requests/'), {
      method: 'POST',
      headers: headers(bearer),
      body: JSON.stringify({ contract_version: 1, source_site_id: site, updates }),
    });

  const postResults = (results: readonly DeliveredScan[], site = 7, bearer = token) =>
    fetch(url('port-scans/'), {
      method: 'POST',
      headers: headers(bearer),
      body: JSON.stringify({
        ...{ contract_version: 1, source_site_id: site, cluster_ids: [world.clusterId], results },
      }),
    });

  async function fetchAll(limit: number, bearer = token) {
    const found: ScanRequestsPage['requests'] = [];
    for (let after = ''; ; ) {
      const page = await fetchPage(`?limit=${limit}${after}`, bearer);
      found.push(...page.requests);
      if (page.next_after === null) return found;
      after = `&after=${page.next_after}`;
    }
  }

  return {
    world,
    token,
    url,
    headers,
    fetchPage,
    fetchAll,
    postUpdates,
    postResults,
    createReader: (name: string) => createReader(world, name),
    async say(id: string, state: ScanRequestUpdate['state'], more: object = {}, site = 7) {
      const answer = await postUpdates([{ id, state, ...quiet, ...more }], site);
      assert.equal(answer.status, 200, await answer.clone().text());
      return ((await answer.json()) as ScanRequestOutcomes).outcomes[0]!.outcome;
    },
    async deliver(scans: readonly DeliveredScan[], site = 7, bearer = token) {
      const answer = await postResults(scans, site, bearer);
      assert.equal(answer.status, 200, await answer.clone().text());
      return ((await answer.json()) as PortScanReceipts).receipts.map(({ receipt }) => receipt);
    },
    request: async ({ actor, serverId }: Reader) =>
      (await world.protectScans.request(actor, serverId)).requests,
    read: ({ subject }: Reader) => world.protectScans.read(systemActor, subject),
    /** The open ports, `22` or `udp/53`. */
    openOf: async ({ subject }: Reader) =>
      (await world.protectScans.read(systemActor, subject)).open.map(({ transport, port }) =>
        transport === 'tcp' ? port : `udp/${port}`,
      ),
    /** What happens so much later by the database's clock. */
    async later(interval: string, happens: () => Promise<unknown>): Promise<void> {
      await moveWorldClock(world.database, interval);
      try {
        await happens();
      } finally {
        await moveWorldClock(world.database, '0');
      }
    },
    /** One look of the loop that keeps requests. */
    keep: () => loopOf(world.protectScans, 'operations-scan-requests').runOnce(),
    /** Pending requests of this many other generations of the account. */
    async fillPending(of: Allocation, count: number): Promise<void> {
      await world.database.pool.query(
        `with more as (
           insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary)
           select pool_id, cluster_id, tenant_id, server_id, '198.18.0.0'::inet + (allocations.id * 256 + n), prefix_length, gateway, false
           from allocations, generate_series(1, $2::int) n where id = $1 returning *)
         insert into scan_requests (kind, allocation_id, cluster_id, tenant_id, server_id, address)
         select 'manual', id, cluster_id, tenant_id, server_id, host(address) from more`,
        [of.id, count],
      );
    },
    [Symbol.asyncDispose]: () => world[Symbol.asyncDispose](),
  };
}
