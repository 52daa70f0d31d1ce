/** The state of each BGP peer of the settings, for pages. */
import type { Queryable } from '#service-kit/postgres/index.ts';
import { listPeersInUse } from './announced-store.ts';
import type { BgpPeer } from './peer.ts';
import { listSessions } from './sessions-store.ts';

/**
 * `unused`: no rule that is on needs a session. `unknown`: one is needed, and no process of the monitor has said how it goes
 * for a while.
 */
export interface PeerState {
  name: string;
  session: 'established' | 'down' | 'unknown' | 'unused';
  /** Why the session is down. */
  problem: string | null;
  /** Announced now. */
  routes: number;
  /** Since when it is established, or down. */
  sinceMs: number | null;
}

/** The process that holds the sessions says this more often; a lease of a dead one ends within it. */
const toldAgeSecondsMax = 45;

export async function describePeers(db: Queryable, peers: readonly BgpPeer[]): Promise<PeerState[]> {
  if (peers.length === 0) return [];
  const [stored, used] = await Promise.all([listSessions(db), listPeersInUse(db)]);
  return peers.map(({ name }) => {
    const told = stored.find(
      ({ peer, toldAgeSeconds }) => peer === name && toldAgeSeconds <= toldAgeSecondsMax,
    );
    if (!used.includes(name)) return { name, session: 'unused', problem: null, routes: 0, sinceMs: null };
    if (!told) return { name, session: 'unknown', problem: null, routes: 0, sinceMs: null };
    const { problem, routes, sinceMs } = told;
    return { name, session: problem === null ? 'established' : 'down', problem, routes, sinceMs };
  });
}
