/**
 * Tells BGP peers which routes rules have announced, in one process of all: the one that holds the lease.
 *
 * The database says what is announced; each run brings every session to exactly that, also after a restart. A session lives
 * only as long as the lease is trusted. So when all monitors are gone, or none reaches the database, sessions end and peers
 * withdraw the routes after the time of graceful restart.
 */
import { createLeasedLoop, ifHeld, type Lease, type LeasedLoop } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Action, Step } from '../action.ts';
import { describeRoutes, type StepResult } from '../carry-out.ts';
import type { HandOffDeps } from '../index.ts';
import { createWorker } from '../work-actions.ts';
import type { BgpPeer } from './peer.ts';
import { routesOf } from './route.ts';
import { createSession, type Session } from './session.ts';
import {
  type Announced,
  listAnnounced,
  listPeersInUse,
  listSessions,
  noteSessions,
  type ToldSession,
} from './sessions-store.ts';

const intervalMs = 1_000;
const leaseSeconds = 30;
/** A state that stays is said again this often. */
const saidAgainSeconds = 10;

export function createBgpSpeaker(deps: HandOffDeps): LeasedLoop {
  const { db, clock, reporter, bgp } = deps;
  const sessions = new Map<string, Session>();

  /** Opens sessions that are needed, and closes those that are not. */
  async function connect(trustedUntilMs: number): Promise<void> {
    const used = new Set(await listPeersInUse(db()));
    for (const [name, session] of sessions)
      if (!used.has(name)) {
        session.close();
        sessions.delete(name);
      }
    for (const peer of bgp.peers.filter(({ name }) => used.has(name))) {
      const { ownAs, keepSeconds } = bgp;
      const session = sessions.get(peer.name) ?? createSession({ peer, ownAs, keepSeconds, clock, reporter });
      sessions.set(peer.name, session);
      session.trustUntil(trustedUntilMs);
      session.connect();
    }
    await Promise.all([...sessions.values()].map((session) => session.settled()));
  }

  /** Tells a peer all that it is to know. */
  const tell = (name: string, announced: readonly Announced[]) =>
    sessions
      .get(name)!
      .sync(announced.filter(({ target }) => target.peer === name).flatMap((action) => routesOf(action)));

  async function carryOut(action: Action, step: Step): Promise<StepResult> {
    const name = action.target.peer ?? '';
    const session = sessions.get(name);
    if (!session) {
      const error = `${name} is not in SVC_HAND_OFF_BGP_PEERS`;
      // Without a session the peer has no routes any more.
      return { error: step === 'ban' ? error : null, mayHaveActed: false, output: error };
    }
    const others = (await listAnnounced(db())).filter(({ id }) => id !== action.id);
    const error = await tell(name, step === 'ban' ? [...others, action] : others);
    if (error !== null) return { error, mayHaveActed: false, output: '', isOutage: session.problem !== null };
    const done = step === 'ban' ? 'Announced' : 'Withdrew';
    return { error, mayHaveActed: true, output: `${done} ${describeRoutes(action)}.` };
  }

  const worker = createWorker(deps, {
    ...{ name: 'hand-off bgp', workers: 1, kinds: ['blackhole', 'flowspec'], hasDryRuns: false },
    carryOut,
  });

  const loop = createLeasedLoop({
    name: 'hand-off bgp',
    intervalMs,
    ttlSeconds: leaseSeconds,
    ...{ db, clock, reporter },
    async run(lease) {
      await connect(lease.trustedUntilMs);
      const announced = await listAnnounced(db());
      for (const name of sessions.keys()) await tell(name, announced);
      await worker.drain();
      await noteStates(db(), lease, sessions);
    },
  });

  return {
    ...loop,
    async stop() {
      await loop.stop();
      for (const session of sessions.values()) session.close();
      sessions.clear();
    },
  };
}

/** Keeps how the sessions go, for pages of every process. */
async function noteStates(db: Queryable, lease: Lease, sessions: ReadonlyMap<string, Session>) {
  const announced = await listAnnounced(db);
  const states = [...sessions].map(([peer, { problem }]): ToldSession => {
    const own = announced.filter(({ target }) => target.peer === peer);
    return { peer, problem, routes: problem === null ? own.flatMap((one) => routesOf(one)).length : 0 };
  });
  const stored = await listSessions(db);
  const isSaid = (one: ToldSession) =>
    stored.some(
      ({ peer, problem, routes, toldAgeSeconds }) =>
        peer === one.peer &&
        problem === one.problem &&
        routes === one.routes &&
        toldAgeSeconds < saidAgainSeconds,
    );
  if (stored.length === states.length && states.every(isSaid)) return;
  await ifHeld(db, lease, (trx) => noteSessions(trx, states));
}

// The state of each BGP peer of the settings, for pages.

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
