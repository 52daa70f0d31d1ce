/**
 * Moves the facts of a running installation from one engine to the other, a day of a site at a time.
 *
 * Until the switch the source is the engine in use: uploads go on being applied to it, and every transaction that writes facts marks
 * the days that it changes (`noteChanges`). A copy of a day begins by removing the marks that are there, so what comes after is marked again
 * and the day is copied again. Days that have ended are copied first. Then the inbox holds what arrives from now on, applies what
 * arrived before, and the rest is copied. The switch is one transaction that no writer of facts runs beside: it looks that nothing is marked
 * and nothing older waits, and notes the target as the engine in use. A process that is set to the source writes nothing from then on.
 *
 * Everything is in PostgreSQL, so a run that ends anywhere is begun again where it stopped: a day counts as copied when the sums of both
 * engines were the same after its copy.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { blockJudging } from '#monitor/placements/index.ts';
import { type Lease, renewLease, resignLease, takeLease, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type EngineIdentity, readEngineUse, writeEngineUse } from '../control/engine-use-store.ts';
import * as store from '../control/move-store.ts';
import {
  checkDays,
  copyDays,
  createMoveProgress,
  fenced,
  goOn,
  listLeft,
  type MoveStep,
  type Moving,
  moveLeaseSeconds,
  stopped,
} from './move-days.ts';
import type { MoveEnds } from './move-ends.ts';

/** Holds uploads back while the last facts are copied; `inbox/` has it. */
export interface UploadHold {
  /** From now on uploads that arrive wait. Replaces a hold that another process left. */
  begin(id: string): Promise<void>;
  /** False when it has run out, so that uploads are applied again. */
  renew(id: string): Promise<boolean>;
  /** Uploads that arrived before and are not applied yet. */
  countBefore(id: string): Promise<number>;
  /** In a transaction: whether the hold lasts and nothing that arrived before it waits. */
  isSettled(trx: Queryable, id: string): Promise<boolean>;
  end(id: string): Promise<void>;
  /** Applies what may be applied. */
  drain(): Promise<void>;
}

export interface MoveFactsDeps {
  db: () => Queryable;
  clock: Clock;
  ends: MoveEnds;
  source: EngineIdentity;
  /** Its number is given by the move. */
  targetPlace: string;
  hold: UploadHold;
  /** A line for the person who moves. */
  say(line: string): void;
  signal: AbortSignal;
  /** For tests: called before each step, with its name. */
  onStep?: (step: MoveStep) => Promise<void>;
}

const beatMs = 10_000;
/** Days that change again and again are left for the end. */
const passesMax = 3;

/** Runs until the switch. Throws `facts.move_stopped`, `facts.move_differs`, `facts.move_refused`, and what an engine throws. */
export async function moveFacts(deps: MoveFactsDeps): Promise<void> {
  const lease = await waitForLease(deps);
  const beat = new AbortController();
  const mover = createMover(deps, lease);
  const beating = keepAlive(deps, mover, beat.signal);
  try {
    await mover.begin();
    await mover.copyEnded();
    await mover.checkAll();
    await mover.finish();
  } catch (error) {
    if (!(error instanceof CodedError && error.code === 'facts.move_refused'))
      await store.noteFault(deps.db(), faultText(error)).catch(() => {});
    throw error;
  } finally {
    beat.abort();
    await beating;
    await mover.release().catch(() => {});
    await resignLease(deps, lease).catch(() => {});
  }
}

function faultText(error: unknown): string | null {
  if (error instanceof CodedError && error.code === 'facts.move_stopped') return null;
  return error instanceof Error ? error.message : String(error);
}

/** Gives the move up; what is copied stays in the target. */
export async function cancelMove(db: () => Queryable, clock: Clock): Promise<boolean> {
  const holding = { db, clock, ttlSeconds: moveLeaseSeconds };
  const lease = await takeLease(holding, store.moveLeaseName, randomUUID());
  if (!lease) throw refused('Another process is moving the facts: stop it first.');
  try {
    return await underLease(db(), lease, async (trx) => {
      await blockJudging(trx);
      const had = (await store.readMove(trx)) !== null;
      await store.endMove(trx);
      return had;
    });
  } finally {
    await resignLease(holding, lease);
  }
}

export const refused = (message: string) => new CodedError('facts.move_refused', message);

async function waitForLease({ db, clock, say, signal }: MoveFactsDeps): Promise<Lease> {
  const holder = `${process.pid}-${randomUUID()}`;
  for (let hasSaid = false; ; ) {
    const lease = await takeLease({ db, clock, ttlSeconds: moveLeaseSeconds }, store.moveLeaseName, holder);
    if (lease) return lease;
    if (!hasSaid)
      say(
        `Another process moves the facts, or was killed less than ${moveLeaseSeconds} seconds ago; waiting for it.`,
      );
    hasSaid = true;
    await clock.wait(1_000, signal);
    if (signal.aborted) throw stopped();
  }
}

/** Renews the lease, and the hold while there is one. */
async function keepAlive(deps: MoveFactsDeps, mover: Mover, until: AbortSignal): Promise<void> {
  while (!until.aborted) {
    await deps.clock.wait(beatMs, until);
    if (!until.aborted) await mover.beat().catch(() => {});
  }
}

type Mover = ReturnType<typeof createMover>;

function createMover(deps: MoveFactsDeps, lease: Lease) {
  const { db, clock, hold, say } = deps;
  const moving: Moving = { ...deps, lease, progress: createMoveProgress(clock, say), onStep: deps.onStep };
  let holdId: string | null = null;
  let target: EngineIdentity | null = null;

  async function copy(isEnded: (day: number) => boolean): Promise<boolean> {
    const { all, left } = await listLeft(moving, isEnded);
    moving.progress.begin(all, left);
    await copyDays(moving, left);
    return left.length === 0;
  }

  return {
    async beat() {
      await renewLease({ db, clock, ttlSeconds: moveLeaseSeconds }, lease);
      if (holdId !== null) await hold.renew(holdId);
    },

    async begin() {
      target = await fenced(moving, (trx) => beginMove(trx, deps));
      await store.noteFault(db(), null);
    },

    /** Days that have ended; those that change meanwhile are copied again. */
    async copyEnded() {
      for (let pass = 1; pass <= passesMax; pass += 1) {
        const { now } = await store.readKept(db());
        if (await copy((day) => day + 86_400 <= now)) return;
      }
    },

    checkAll: () => checkDays(moving, say),

    /** Holds uploads, copies the rest, and switches. */
    async finish() {
      await goOn(moving, 'hold');
      holdId = randomUUID();
      await hold.begin(holdId);
      await store.noteHolding(db(), true);
      say('Uploads that arrive from now on wait; sensors are answered as before.');
      for (;;) {
        await settle(deps, holdId, () => goOn(moving, 'hold'));
        await goOn(moving, 'rest');
        const isCopied = await copy(() => true);
        await goOn(moving, 'switch');
        if (isCopied && (await fenced(moving, (trx) => switchOver(trx, deps, holdId!, target!)))) break;
        if (!(await hold.renew(holdId))) throw stopped('The hold of uploads ran out.');
      }
      say(`The traffic facts are in ${deps.targetPlace} now.`);
    },

    async release() {
      if (holdId === null) return;
      await hold.end(holdId);
      await store.noteHolding(db(), false);
    },
  };
}

/** Applies what arrived before the hold, beside other processes that do so. */
async function settle({ hold, clock, say, signal }: MoveFactsDeps, id: string, goOn: () => Promise<void>) {
  for (let said = -1; ; ) {
    await hold.drain();
    const waiting = await hold.countBefore(id);
    if (waiting === 0) return;
    if (waiting !== said) say(`Waiting for ${waiting} uploads that arrived before.`);
    said = waiting;
    await clock.wait(1_000, signal);
    await goOn();
  }
}

/** Begins a move, or goes on with the one under way; returns the target with its number. */
async function beginMove(
  trx: Queryable,
  { ends, source, targetPlace }: MoveFactsDeps,
): Promise<EngineIdentity> {
  await blockJudging(trx);
  const used = await readEngineUse(trx);
  if (used && used.storeId !== source.storeId)
    throw refused(`The traffic facts are in ${used.place} already.`);
  const move = await store.readMove(trx);
  const found = await ends.readTargetId();
  if (move) {
    if (move.toPlace !== targetPlace && move.toStoreId !== found)
      throw refused(
        `A move to ${move.toPlace} is under way: go on with it, or give it up with ./svc monitor move-facts --cancel.`,
      );
    if (move.toStoreId !== found)
      throw refused(
        `${targetPlace} is not the database that this move began with: it was made anew. Give the move up with ./svc monitor move-facts --cancel, then begin again.`,
      );
    return { storeId: move.toStoreId, place: targetPlace };
  }
  if (await ends.targetHasFacts())
    throw refused(
      `${targetPlace} holds traffic facts already, which this move would mix with its own. Delete them first (./svc monitor delete-facts --help), or name an empty database.`,
    );
  const target = { storeId: ends.from === 'postgres' ? randomUUID() : null, place: targetPlace };
  if (target.storeId !== null) await ends.writeTargetId(target.storeId);
  if (!used) await writeEngineUse(trx, source);
  await store.writeMove(trx, target);
  return target;
}

/** False where something changed since the last copy. */
async function switchOver(trx: Queryable, { hold }: MoveFactsDeps, holdId: string, target: EngineIdentity) {
  await blockJudging(trx);
  if (!(await hold.isSettled(trx, holdId))) return false;
  if ((await store.listChangedDays(trx)).length > 0) return false;
  const { factsFrom } = await store.readKept(trx);
  if ((await store.listMoveDays(trx)).some((one) => !one.isWhole && one.day + 86_400 > factsFrom))
    return false;
  await writeEngineUse(trx, target);
  await store.endMove(trx);
  return true;
}
