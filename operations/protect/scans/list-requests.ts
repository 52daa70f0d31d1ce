/** `GET /protect/scan-requests/`: the pending requests, in pages that are fair to accounts (NET-4.e). */
import type { ScanRequestsPage } from '#contracts/admin-api/port-scans.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './request-store.ts';

export interface ListRequestsDeps {
  db: () => Queryable;
  addresses: Pick<Addresses, 'findAllocations'>;
}

const cursorPattern = /^scans:(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z):(\d{1,9}):(\d{1,15})$/;

/** The place in an opaque cursor; null when it is none of ours. */
export function readCursor(cursor: string): store.PageCursor | null {
  const [, asOf, turn, tenantId] =
    cursorPattern.exec(Buffer.from(cursor, 'base64url').toString('latin1')) ?? [];
  if (asOf === undefined || Number.isNaN(Date.parse(asOf))) return null;
  return { asOf, turn: Number(turn), tenantId: Number(tenantId) };
}

const writeCursor = ({ asOf, turn, tenantId }: store.PageCursor) =>
  Buffer.from(`scans:${asOf}:${turn}:${tenantId}`).toString('base64url');

/** A page for a monitor, and the note that it fetches. Requests whose address was released are left out. */
export async function listForMonitor(
  deps: ListRequestsDeps,
  sender: Sender,
  query: { after: store.PageCursor | null; limit: number },
): Promise<ScanRequestsPage> {
  const revision = await store.noteFetch(deps.db(), sender.projectId, sender.clusterIds);
  const from = query.after ?? { asOf: await store.readMoment(deps.db()), turn: 0, tenantId: 0 };
  const rows = await store.listPage(deps.db(), sender.clusterIds, from, query.limit);
  const last = rows.at(-1);
  const found = await deps.addresses.findAllocations(rows.map(({ allocationId }) => allocationId));
  const active = new Map(
    found.filter(({ releasedAt }) => releasedAt === null).map((each) => [each.id, each]),
  );
  return {
    requests: rows.flatMap((row) => {
      const allocation = active.get(row.allocationId);
      if (!allocation) return [];
      return {
        id: row.id,
        billing_account_id: row.tenantId,
        virtual_machine_id: row.serverId,
        cluster_id: row.clusterId,
        allocation_id: row.allocationId,
        address: row.address,
        assigned_at: allocation.assignedAt,
        kind: row.kind,
        profile: 'full' as const,
        requested_at: row.requestedAt.toISOString(),
        expires_at: row.expiresAt.toISOString(),
        revision,
      };
    }),
    next_after: last && rows.length === query.limit ? writeCursor({ ...last, asOf: from.asOf }) : null,
  };
}
