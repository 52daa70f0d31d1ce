/**
 * Carries out actions: their start (`ban`) and, when the attack has been over for the hold time, their end (`unban`).
 *
 * Any number of processes may run it; a claim with a term makes each step run once. A process that dies during a step leaves
 * it to another one, which repeats it, so a receiver must accept a step that it has done already. A start is tried five
 * times. An end is tried until it succeeds or an operator gives it up, and also after a start that seemed to fail.
 */
import { backoffMs } from '#common/retry/index.ts';
import { lockIncidents, setIncidentActions } from '#monitor/incidents/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { type Claim, createOutboxSender, type OutboxSender } from '#service-kit/outbox/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { Action, Step } from './action.ts';
import * as actions from './actions-store.ts';
import { carryOut, type StepResult } from './carry-out.ts';
import type { HandOffDeps } from './index.ts';
import { listIncidentsOf, listTold } from './note-store.ts';
import type { RuleKind } from './rule.ts';
import { readLimit } from './rules-store.ts';

export const startsMax = 5;
const retryStart = { firstMs: 2_000, maxMs: 30_000 };
const retryEnd = { firstMs: 5_000, maxMs: 600_000 };

/** The program itself, in the audit trail. */
const actor = { kind: 'system', job: 'hand-off' } as const;

/** Which actions a worker carries out, and how. */
export interface Work {
  name: string;
  workers: number;
  kinds: readonly RuleKind[];
  hasDryRuns: boolean;
  carryOut(action: Action, step: Step, nowMs: number, signal: AbortSignal): Promise<StepResult>;
}

/** Programs, webhooks, filters, and dry runs of every kind. */
export function createHandOffWorker(deps: HandOffDeps): OutboxSender {
  return createWorker(deps, {
    ...{ name: 'hand-off', workers: 4, kinds: ['webhook', 'command', 'filter'], hasDryRuns: true },
    carryOut: (action, step, nowMs, signal) => carryOut(deps, action, step, nowMs, signal),
  });
}

export function createWorker(deps: HandOffDeps, work: Work): OutboxSender {
  const { db, clock, reporter, secrets } = deps;
  return createOutboxSender<Claim, Action>(
    {
      name: work.name,
      failure: 'hand-off can not work',
      table: 'hand_off_actions',
      workers: work.workers,
      async prepare() {
        await secrets.ready();
        return false;
      },
      claim: (from, claimSeconds) => actions.claimAction(from, claimSeconds, work),
      next: (from, claim) => nextWithRoom(from, claim),
      attempt: (claim, action, signal) => attempt(deps, work, claim, action, signal),
    },
    { db, clock, reporter },
  );
}

/** The step that is due; of a start only while the site has room for its address. */
async function nextWithRoom(db: Queryable, claim: Claim): Promise<Action | null> {
  const action = await actions.nextStep(db, claim);
  if (action?.state !== 'waiting') return action;
  const hasRoom = await inTransaction(db, async (trx) => {
    await actions.lockRoom(trx, action.siteId);
    const { addressesMax } = await readLimit(trx, action.siteId);
    return actions.takeRoom(trx, claim, addressesMax);
  });
  return hasRoom ? action : null;
}

/** True when the step is done. */
async function attempt(deps: HandOffDeps, work: Work, claim: Claim, action: Action, signal: AbortSignal) {
  const { db, reporter } = deps;
  const step: Step = action.state === 'waiting' ? 'ban' : 'unban';
  if (step === 'ban' && !action.isDryRun && !(await actions.noteTried(db(), claim))) return false;
  const result = await work.carryOut(action, step, await readNowMs(db()), signal);
  // A call that was cut short by a stop is repeated.
  if (signal.aborted && result.error !== null) return false;
  // The same fault of every attempt is one fact.
  if (result.error !== null && result.error !== action.lastError)
    reporter.warn('a hand-off step failed', {
      rule: action.ruleName,
      address: action.address,
      step,
      attempt: action.attempts + 1,
      why: result.error,
    });
  return (await settle(deps, claim, action, step, result)) && result.error === null;
}

/** Records the attempt, tells of what has begun or ended, and leaves an entry in the audit trail. */
function settle(deps: HandOffDeps, claim: Claim, action: Action, step: Step, result: StepResult) {
  return inTransaction(deps.db(), async (trx) => {
    // Before the action's own row: transactions that change incidents lock in this order.
    await lockIncidents(trx, [action.siteId]);
    const after = step === 'ban' ? afterStart(action, result) : afterEnd(action, result);
    const isRecorded = await actions.recordAttempt(trx, claim, {
      ...after,
      output: result.output,
      error: result.error,
    });
    if (!isRecorded || action.isDryRun) return isRecorded;
    const told = await listTold(trx, await listIncidentsOf(trx, action.id));
    await setIncidentActions(trx, told);
    const isFinal = result.error === null || after.state === 'failed' || after.attempts === 0;
    if (isFinal)
      await record(trx, actor, {
        operation: step === 'ban' ? 'hand_off.start' : 'hand_off.end',
        subject: { kind: 'hand_off_action', id: action.id, name: action.address },
        after: {
          siteId: action.siteId,
          rule: action.ruleName,
          kind: action.kind,
          address: action.address,
          incidentId: action.incidentId,
          state: after.state,
          error: result.error,
        },
      });
    return true;
  });
}

type After = Pick<actions.Recorded, 'state' | 'hasFailed' | 'attempts' | 'retrySeconds'>;

function afterStart({ attempts }: Action, { error, mayHaveActed, isOutage }: StepResult): After {
  if (error === null) return { state: 'active', hasFailed: false, attempts: 0, retrySeconds: 0 };
  const tried = attempts + 1;
  if (tried < startsMax || isOutage) {
    const retrySeconds = isOutage ? 1 : backoffMs(retryStart, tried) / 1000;
    return { state: 'waiting', hasFailed: false, attempts: tried, retrySeconds };
  }
  // What may have had an effect is undone.
  return { state: mayHaveActed ? 'ending' : 'failed', hasFailed: true, attempts: 0, retrySeconds: 0 };
}

function afterEnd({ attempts, hasFailed }: Action, { error }: StepResult): After {
  if (error === null)
    return { state: hasFailed ? 'failed' : 'ended', hasFailed, attempts: 0, retrySeconds: 0 };
  const tried = attempts + 1;
  if (hasFailed && tried >= startsMax)
    return { state: 'failed', hasFailed, attempts: tried, retrySeconds: 0 };
  return { state: 'ending', hasFailed, attempts: tried, retrySeconds: backoffMs(retryEnd, tried) / 1000 };
}
