/**
 * Scan requests between operations and this monitor: what is asked for is listed as a whole, claimed, and told about while
 * it runs. A claim leaves a request queued; only a start that a sensor reported makes it running (NET-2.7.2).
 */
import {
  type ScanRequest,
  type ScanRequestUpdate,
  scanRequestsLimitMax,
} from '#contracts/admin-api/port-scans.ts';
import { OperationsError } from '#monitor/operations-client/index.ts';
import { type PendingUpdate, progressOf } from '#monitor/scans/index.ts';
import type { FeedSources } from '../feed.ts';
import type { Round } from '../round.ts';

const requestsMax = 100_000;
/** Updates of one request, and of one run. */
const updatesMax = 100;
const updatesOfRun = 2_000;

/** Lists the requests again and tells operations what became of them. Calls that fail end the run, as those of a delivery. */
export async function syncRequests({ scans, sites }: Pick<FeedSources, 'scans' | 'sites'>, round: Round) {
  const requests = await fetchRequests(round);
  await round.write((trx) => scans.noteListing(trx, requests, round.connectionRevision));
  round.count('requests', requests.length);
  const pending = await scans.listPendingUpdates(
    await sites.listClusters(),
    round.connectionRevision,
    updatesOfRun,
  );
  for (const ofSite of Map.groupBy(pending, ({ siteId }) => siteId).values())
    for (let at = 0; at < ofSite.length; at += updatesMax)
      await tell({ scans }, round, ofSite.slice(at, at + updatesMax));
}

async function fetchRequests(round: Round): Promise<ScanRequest[]> {
  const found = new Map<string, ScanRequest>();
  let after: string | null = null;
  for (;;) {
    const page = await round.client.listScanRequests(after, scanRequestsLimitMax);
    for (const request of page.requests) found.set(request.id, request);
    if (page.next_after === null) return [...found.values()];
    // A cursor that stands still would never end.
    if (page.next_after === after || found.size > requestsMax) throw new OperationsError('malformed');
    after = page.next_after;
    await round.renew();
  }
}

async function tell({ scans }: Pick<FeedSources, 'scans'>, round: Round, pending: readonly PendingUpdate[]) {
  const { outcomes } = await round.client.updateScanRequests({
    contract_version: 1,
    source_site_id: pending[0]!.siteId,
    updates: pending.map(toWire),
  });
  // Answers about something else prove nothing.
  const isWhole =
    outcomes.length === pending.length && outcomes.every(({ id }, at) => id === pending[at]!.id);
  if (!isWhole) throw new OperationsError('malformed');
  for (const { state } of pending) round.count(state, 1);
  await round.write((trx) =>
    scans.noteAnswers(
      trx,
      pending.map(({ id, siteId, state, startedAtMs, heartbeatAtMs }, at) => ({
        ...{ id, siteId, state, outcome: outcomes[at]!.outcome },
        heartbeatAtMs: state === 'running' ? Math.max(startedAtMs ?? 0, heartbeatAtMs ?? 0) : null,
      })),
    ),
  );
}

function toWire({ id, state, startedAtMs, heartbeatAtMs, phase, percent }: PendingUpdate): ScanRequestUpdate {
  if (state !== 'running') return { id, state, started_at: null, heartbeat_at: null, progress: null };
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    ...{ id, state, started_at: time(startedAtMs), heartbeat_at: time(heartbeatAtMs ?? startedAtMs) },
    progress: progressOf(phase, percent),
  };
}
