/**
 * What monitors fetch and answer of scan requests: `GET /protect/scan-requests/` and, for what became of them before their
 * results, `POST`.
 *
 * A claim leaves a request queued; only the start that a sensor reported makes it running (NET-2.7.2). The source that claimed
 * a request speaks for it, until it has been silent for 15 minutes. Repeated and late words change nothing.
 */
import { CodedError } from '#common/errors/index.ts';
import type {
  ScanRequestOutcome,
  ScanRequestOutcomes,
  ScanRequestsPage,
  ScanRequestUpdate,
  ScanRequestUpdates,
} from '#contracts/admin-api/port-scans.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { Source } from '../traffic/index.ts';
import * as store from './request-store.ts';
import { nextState, type RequestCause } from './scan-request.ts';

const causes: Readonly<Record<ScanRequestUpdate['state'], RequestCause>> = {
  claimed: 'claimed',
  running: 'started',
  withdrawn: 'withdrawn',
};

/** Throws `port_scans.invalid` (details: `fields`). One outcome for each update, in their order. */
export async function updateRequests(
  db: Queryable,
  sender: Sender,
  { source_site_id: siteId, updates }: ScanRequestUpdates,
): Promise<ScanRequestOutcomes> {
  checkUpdates(updates);
  const source = { projectId: sender.projectId, siteId };
  return inTransaction(db, async (tx) => {
    const outcomes: ScanRequestOutcomes['outcomes'] = [];
    const ids = updates.map(({ id }) => id);
    const held = new Map((await store.lockRequests(tx, ids, source)).map((row) => [row.id, row]));
    for (const update of updates) {
      const request = held.get(update.id);
      const isKnown = request && (sender.clusterIds?.includes(request.clusterId) ?? true);
      const outcome = isKnown ? await applyUpdate(tx, source, request, update) : 'unknown';
      outcomes.push({ id: update.id, outcome });
    }
    return { outcomes };
  });
}

function checkUpdates(updates: readonly ScanRequestUpdate[]): void {
  const seen = new Set<string>();
  const fields = updates.flatMap(({ id, state, started_at }, index) => {
    const path = `updates.${index}`;
    const isRepeated = seen.has(id);
    seen.add(id);
    if (isRepeated) return [{ path: `${path}.id`, message: 'appears twice' }];
    if (state === 'running' && started_at === null)
      return [{ path: `${path}.started_at`, message: 'must be a time when the state is running' }];
    return [];
  });
  if (fields.length === 0) return;
  throw new CodedError('port_scans.invalid', 'Some fields are not as they must be.', {
    fields: fields.slice(0, 20),
  });
}

async function applyUpdate(
  tx: Queryable,
  source: Source,
  request: store.LockedRequest,
  update: ScanRequestUpdate,
): Promise<ScanRequestOutcome> {
  if (request.hasLapsed) await store.endRequest(tx, request.id, 'expired');
  const { state } = request;
  if (state === 'expired' || state === 'cancelled') return state;
  if (!request.isOwner && !request.isFree) return 'unknown';
  const next = nextState(state, causes[update.state]);
  if (next === null) {
    await store.noteSource(tx, request.id);
    return 'unchanged';
  }
  if (next === state && !saysMore(request, update)) {
    await store.noteSource(tx, request.id);
    return 'unchanged';
  }
  await store.noteContact(tx, request.id, source, {
    state: next,
    isReleased: update.state === 'withdrawn' && next === 'queued',
    ...(update.state === 'running' && {
      startedAt: new Date(update.started_at!),
      heartbeatAt: new Date(update.heartbeat_at ?? update.started_at!),
      progress: update.progress,
    }),
  });
  return 'accepted';
}

/** Whether an update that keeps the state tells of a new claim, a given back one, or a later heartbeat. */
function saysMore(request: store.LockedRequest, { state, heartbeat_at: at }: ScanRequestUpdate): boolean {
  if (state === 'claimed') return !request.isOwner;
  if (state === 'withdrawn') return request.claimedAt !== null;
  return at !== null && Date.parse(at) > (request.heartbeatAt?.getTime() ?? 0);
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
  deps: { db: () => Queryable; addresses: Pick<Addresses, 'findAllocations'> },
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
