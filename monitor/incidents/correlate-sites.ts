/**
 * Site-level correlations: attacks of one site that began within a minute of one another and share a class, such as a flood
 * against many servers, or servers that attack together. A download or a drill is of none, nor is an attack alone.
 */
import { randomUUID } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import {
  assignCorrelations,
  type Correlation,
  deleteEmptyCorrelations,
  listPeers,
  type Peer,
  writeCorrelations,
} from './correlations-store.ts';

/** Starts of two neighbours of one correlation lie at most so far apart. */
export const togetherMs = 60_000;

/** Brings the correlations of these incidents and their peers up to date. Call it after the incidents were written. */
export async function correlateSites(trx: Queryable, incidentIds: readonly string[]): Promise<void> {
  const peers = await listPeers(trx, incidentIds, togetherMs);
  if (peers.length < 2 && peers.every(({ correlationId }) => correlationId === null)) return;
  const former = [...new Set(peers.flatMap(({ correlationId }) => correlationId ?? []))];
  const free = new Set(former);
  const correlations: Correlation[] = [];
  const assigned: { id: string; correlationId: string | null }[] = [];
  for (const group of groupPeers(peers)) {
    const own = group.find(({ correlationId }) => correlationId !== null && free.has(correlationId));
    const id = group.length === 1 ? null : (own?.correlationId ?? randomUUID());
    if (id !== null) {
      free.delete(id);
      correlations.push(correlationOf(id, group));
    }
    for (const peer of group)
      if (peer.correlationId !== id) assigned.push({ id: peer.id, correlationId: id });
  }
  await writeCorrelations(trx, correlations);
  await assignCorrelations(trx, assigned);
  await deleteEmptyCorrelations(trx, former);
}

/** Peers that are connected by neighbours of one class, the earliest first. */
export function groupPeers(peers: readonly Peer[]): Peer[][] {
  const sorted = peers.toSorted((a, b) => a.startedAtMs - b.startedAtMs || (a.id < b.id ? -1 : 1));
  const groups = new Map(sorted.map((peer): [Peer, Peer[]] => [peer, [peer]]));
  const lastOf = new Map<string, Peer>();
  for (const peer of sorted)
    for (const name of peer.classes) {
      const key = `${peer.siteId} ${name}`;
      const last = lastOf.get(key);
      lastOf.set(key, peer);
      if (!last || peer.startedAtMs - last.startedAtMs > togetherMs) continue;
      const [into, from] = [groups.get(last)!, groups.get(peer)!];
      if (into === from) continue;
      into.push(...from);
      for (const one of from) groups.set(one, into);
    }
  return [...new Set(groups.values())];
}

function correlationOf(id: string, group: readonly Peer[]): Correlation {
  const starts = group.map(({ startedAtMs }) => startedAtMs);
  return {
    id,
    siteId: group[0]!.siteId,
    classes: [...new Set(group.flatMap(({ classes }) => classes))].sort(),
    firstStartedAtMs: Math.min(...starts),
    lastStartedAtMs: Math.max(...starts),
    lastObservedAtMs: Math.max(...group.map(({ lastObservedAtMs }) => lastObservedAtMs)),
  };
}
