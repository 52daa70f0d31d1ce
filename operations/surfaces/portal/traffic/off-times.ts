/** When a server was switched off: why its charts have no values then. */
import type { Features } from '#operations/features.ts';
import { offTimes } from '../../parts/index.ts';
import type { ProtectedServer } from '../protect/guard-protect.ts';

/** Actions that say when a server was off. */
const actionsMax = 100;

/** In time order. */
export async function readOffTimes(
  { servers }: Features,
  { visitor, server }: Pick<ProtectedServer, 'visitor' | 'server'>,
  nowMs: number,
): Promise<{ fromMs: number; toMs: number }[]> {
  const actions = await servers.listActions(visitor.actor, null, server.id, actionsMax);
  const isOff = server.powerState === 'stopped';
  return offTimes(actions, { isOff, sinceMs: server.statusChangedAt.getTime(), nowMs });
}
