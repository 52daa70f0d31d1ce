/**
 * Loads the simulated site into the monitor: seven days, the newest hours first, and then each minute when it is over.
 *
 * Each upload is noted before it is sent, and a sensor has one under way. A loader that begins again sends the upload that was under way once more, under
 * its number and with the same bytes, and the monitor recognises it; so nothing is loaded twice, wherever the one before ended. Minutes
 * that passed while nothing ran are loaded like history.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { buildBody, incidentsOf, type UploadOrder } from './build-upload.ts';
import type { MonitorCalls } from './monitor-calls.ts';
import type { Pace } from './pace.ts';
import type { Hypervisor, SitePlan } from './plan.ts';
import { createEstimate, type Progress } from './progress.ts';
import { addRange, countLoaded, newestMissing, type Range } from './ranges.ts';
import type { SensorState, SiteState } from './site-state.ts';

const daySeconds = 86_400;
export const historySeconds = 7 * daySeconds;
/** A minute is uploaded when it has been over for this long, as by a sensor. */
const settleMs = 2_000;
const progressEveryMs = 5_000;

export interface LoadDeps {
  clock: Clock;
  reporter: Reporter;
  calls: MonitorCalls;
  pace: Pace;
  plan: SitePlan;
  /** Enrolment tokens by node, of nodes without a credential. */
  tokens: Readonly<Record<string, string>>;
  /** Null: nothing was loaded yet. */
  state: SiteState | null;
  write: (state: SiteState) => void;
  tell: (progress: Progress) => void;
  signal: AbortSignal;
}

/** Runs until the signal is aborted; unless it goes on, until the minutes up to now are loaded. */
export async function loadSite(deps: LoadDeps, goesOn = true): Promise<SiteState> {
  const { clock, signal, tell } = deps;
  const state = await openState(deps);
  const history: Range = [oldestWanted(state, clock), endOfMinutes(clock)];
  const count = () => {
    const sensors = Object.values(state.sensors);
    const loaded = sensors.reduce((sum, sensor) => sum + countLoaded(sensor.loaded, history), 0);
    return { loaded, total: (sensors.length * (history[1] - history[0])) / 60 };
  };
  const estimate = createEstimate(clock.monotonicMs(), count().loaded);
  let toldAtMs = Number.NEGATIVE_INFINITY;
  let isLoaded = false;
  while (!signal.aborted) {
    const round = findRound(deps.plan, state, [oldestWanted(state, clock), endOfMinutes(clock)]);
    if (!isLoaded && (round.length === 0 || clock.monotonicMs() - toldAtMs >= progressEveryMs)) {
      const progress = estimate(clock.monotonicMs(), count());
      isLoaded = progress.percent === 100;
      tell(progress);
      toldAtMs = clock.monotonicMs();
    }
    if (round.length > 0) {
      await sendRound(deps, state, round);
      await deps.pace.pause(signal);
    } else if (!goesOn) break;
    else await clock.wait(60_000 - ((clock.nowMs() - settleMs) % 60_000), signal);
  }
  deps.write(state);
  return state;
}

/**
 * Every sensor with a credential: those of before, each with a new one when it is due, and new ones. One whose token was used up by
 * a loader that was killed before it had the credential is left out until there is another token.
 */
async function openState(deps: LoadDeps): Promise<SiteState> {
  const { clock, plan, calls, tokens, write, reporter } = deps;
  const fromMinute = Math.floor((clock.nowMs() / 1000 - historySeconds) / 3_600) * 3_600;
  const state: SiteState = deps.state ?? { seed: plan.seed, fromMinute, sensors: {} };
  for (const { node } of plan.hypervisors) {
    if (deps.signal.aborted) break;
    const known = state.sensors[node];
    if (known) {
      known.credential = (await calls.rotateWhenDue(known.credential)) ?? known.credential;
      continue;
    }
    const enrolled = await calls.enrol(node, tokens[node] ?? '');
    if (enrolled.credential === null) {
      reporter.warn('not enrolled; the next start of the demo makes a token', {
        node,
        reason: enrolled.reason,
      });
      continue;
    }
    const { credential } = enrolled;
    state.sensors[node] = { credential, spoolId: randomUUID(), sequence: 0, pending: null, loaded: [] };
    write(state);
  }
  return state;
}

interface Next {
  hypervisor: Hypervisor;
  sensor: SensorState;
  order: UploadOrder;
}

/**
 * What may be under way and, of every other sensor, the newest missing hour where no other is newer. Uploads of one hour arrive
 * together, because the monitor sums up the minutes of a site anew whenever one of its sensors tells of them.
 */
function findRound(plan: SitePlan, state: SiteState, wanted: Range): Next[] {
  const found: Next[] = [];
  for (const hypervisor of plan.hypervisors) {
    const sensor = state.sensors[hypervisor.node];
    if (!sensor) continue;
    const missing = sensor.pending ? null : newestMissing(sensor.loaded, wanted);
    if (sensor.pending) found.push({ hypervisor, sensor, order: sensor.pending });
    else if (missing) {
      const order: UploadOrder = { part: 'minutes', fromMinute: missing[0], endMinute: missing[1] };
      found.push({ hypervisor, sensor, order });
    }
  }
  const newest = Math.max(...found.map(({ order }) => order.endMinute));
  return found.filter(({ sensor, order }) => sensor.pending !== null || order.endMinute === newest);
}

/** Notes all uploads of the round, then sends them side by side, each sensor its own. */
async function sendRound(deps: LoadDeps, state: SiteState, round: readonly Next[]): Promise<void> {
  for (const { sensor, order } of round) {
    if (sensor.pending) continue;
    sensor.sequence += 1;
    sensor.pending = order;
  }
  deps.write(state);
  await Promise.all(round.map((next) => sendNext(deps, state, next)));
}

async function sendNext(deps: LoadDeps, state: SiteState, next: Next): Promise<void> {
  const { clock, plan, calls, reporter, signal, write } = deps;
  const { hypervisor, sensor, order } = next;
  const body = buildBody(plan, hypervisor, { spoolId: sensor.spoolId, sequence: sensor.sequence }, order);
  while (!signal.aborted) {
    const outcome = await calls.send(sensor.credential, order.part, body);
    if (outcome.kind === 'trouble') {
      reporter.warn('upload will be sent again', { node: hypervisor.node, reason: outcome.message });
      await clock.wait(outcome.waitMs, signal);
      continue;
    }
    if (outcome.kind === 'denied') {
      // The next start of the demo makes a token for it, which replaces the sensor.
      delete state.sensors[hypervisor.node];
      write(state);
      const { node } = hypervisor;
      reporter.warn('credential not taken; the next start of the demo enrols the sensor anew', { node });
      return;
    }
    if (outcome.kind === 'refused')
      reporter.error('upload was refused and is left out', {
        node: hypervisor.node,
        reason: outcome.message,
      });
    finish(plan, next);
    return;
  }
}

/** The receipt came: what follows is the other part of the range, or it is loaded. Stored with the next upload. */
function finish(plan: SitePlan, { hypervisor, sensor, order }: Next): void {
  if (order.part === 'minutes' && incidentsOf(plan, hypervisor, order).length > 0) {
    sensor.sequence += 1;
    sensor.pending = { ...order, part: 'incidents' };
    return;
  }
  sensor.pending = null;
  sensor.loaded = addRange(sensor.loaded, [order.fromMinute, order.endMinute]);
}

function endOfMinutes(clock: Clock): number {
  return Math.floor((clock.nowMs() - settleMs) / 60_000) * 60;
}

function oldestWanted(state: SiteState, clock: Clock): number {
  return Math.max(state.fromMinute, endOfMinutes(clock) - historySeconds);
}
