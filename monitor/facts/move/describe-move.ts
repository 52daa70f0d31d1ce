/** How a move stands, and whether this process is set to the engine in use. */
import { listLeases } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { describeOther, type EngineIdentity, readEngineUse } from '../control/engine-use-store.ts';
import { moveLeaseName, readMoveProgress } from '../control/move-store.ts';

export interface FactMoveState {
  /** What is moving, as a sentence; null: nothing is. */
  text: string | null;
  /** What needs attention; null: nothing does. */
  problem: string | null;
}

export async function readMoveState(db: Queryable, own: EngineIdentity): Promise<FactMoveState> {
  const used = await readEngineUse(db);
  if (used && used.storeId !== own.storeId)
    return { text: null, problem: `Uploads wait: ${describeOther(used.place, own.place)}` };
  const move = await readMoveProgress(db);
  if (!move) return { text: null, problem: null };
  const leases = await listLeases(db);
  const copied = `${move.copied} ${move.copied === 1 ? 'day' : 'days'} of sites`;
  if (leases.some(({ name, isHeld }) => name === moveLeaseName && isHeld)) {
    const text = `The traffic facts are being copied to ${move.toPlace}: ${copied} so far${move.isHolding ? ', the last of them while uploads wait' : ''}.`;
    return { text, problem: null };
  }
  const why = move.fault === null ? '' : ` ${move.fault.split('\n')[0]}`;
  const problem = `The move of the traffic facts to ${move.toPlace} has stopped after ${copied}.${why} Go on with ./svc monitor move-facts --to …, or give it up with --cancel.`;
  return { text: null, problem };
}
