/**
 * What the monitor wants this sensor to do, fetched every 30 seconds.
 *
 * A plan has sections, each with a reader of its own in `sections/`.
 *
 * Promises: the last good plan is kept on disk, so a sensor that starts without its monitor still knows what is
 * local. A plan that can't be fetched or read changes nothing. Versions missing from a plan are an older monitor's,
 * and what it would not understand is left out (NET-9.4).
 */
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';
import { parsePlan, type SensorPlan, splitPlan } from './sensor-plan.ts';

export { downgradeForMonitor } from './sections/capture.ts';
export { parsePlan, type SensorPlan } from './sensor-plan.ts';

const fetchEveryMs = 30_000;
const retryFirstMs = 5_000;
/** NET-8: one fetch at a time, 15 seconds each. */
const fetchTimeoutMs = 15_000;

export interface PlanFollowerOptions {
  /** Carries the sensor's credential. */
  client: MonitorClient;
  stateDirectory: string;
  clock: Clock;
  reporter: Reporter;
  /** Called with the stored plan at the start, if there is one, and with each plan that differs from the last. */
  onPlan(plan: SensorPlan): void;
  /** Called with each plan that was fetched: whether the monitor asks for another credential. Never with a stored one. */
  onCredential?(isRotationDue: boolean): void;
  /** While the next plan is wanted sooner: after how long; else null. */
  urgentEveryMs?(): number | null;
}

/** Makes the part that keeps the plan fresh; `hasten` fetches it at once. */
export function createPlanFollower(options: PlanFollowerOptions): Part & { hasten(): void } {
  const { client, clock, reporter } = options;
  const path = join(options.stateDirectory, 'plan.json');
  const stopping = new AbortController();
  let sleeping = new AbortController();
  let etag: string | null = null;
  let lastText: string | null = null;
  let isFailing = false;
  let running: Promise<void> = Promise.resolve();

  function take(body: unknown, isStored: boolean): boolean {
    const plan = parsePlan(body);
    if (!plan) return false;
    const text = JSON.stringify(body);
    if (text !== lastText) {
      lastText = text;
      if (!isStored) store(text);
      logPlan(reporter, plan, isStored);
      options.onPlan(plan);
    }
    return true;
  }

  function store(text: string): void {
    try {
      writeFileSync(`${path}.new`, text, { mode: 0o600 });
      renameSync(`${path}.new`, path);
    } catch (error) {
      reporter.warn('the plan could not be stored', { why: describeError(error) });
    }
  }

  function takeStored(): void {
    try {
      take(JSON.parse(readFileSync(path, 'utf8')), true);
    } catch {
      // None yet, or damaged: the monitor's word replaces it.
    }
  }

  /** Returns null when all is well, else what is wrong. */
  async function fetchOnce(): Promise<string | null> {
    const answer = await client.request({
      method: 'GET',
      path: '/plan',
      timeoutMs: fetchTimeoutMs,
      signal: stopping.signal,
      ...(etag ? { headers: { 'if-none-match': etag } } : {}),
    });
    if (answer.status === 304) return null;
    if (answer.status !== 200) return refusalMessage(answer);
    const { work, isRotationDue } = splitPlan(answer.json);
    if (!take(work, false)) return 'the answer is no plan';
    options.onCredential?.(isRotationDue);
    etag = answer.headers.get('etag');
    return null;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const wrong = await fetchOnce().catch(describeError);
      if (stopping.signal.aborted) return;
      if (wrong && !isFailing) reporter.warn('no fresh plan, keeping the last one', { why: wrong });
      if (!wrong && isFailing) reporter.info('the plan is fresh again');
      isFailing = wrong !== null;
      sleeping = new AbortController();
      const urgentMs = wrong ? null : (options.urgentEveryMs?.() ?? null);
      const normalMs = wrong && lastText === null ? retryFirstMs : fetchEveryMs;
      const signal = AbortSignal.any([stopping.signal, sleeping.signal]);
      await clock.wait(urgentMs ?? normalMs, signal);
    }
  }

  return {
    name: 'plan',
    hasten: () => sleeping.abort(),
    async start() {
      takeStored();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function logPlan(reporter: Reporter, plan: SensorPlan, isStored: boolean): void {
  const { localPrefixes, protectedAddresses, omissions } = plan;
  const counts = { local_cidrs: localPrefixes.length, protected: protectedAddresses.length };
  reporter.info(isStored ? 'using the stored plan' : 'plan taken', counts);
  for (const { section, ignored, leftOut } of omissions)
    reporter.warn('entries of the plan are not used', {
      section,
      not_understood: ignored,
      above_bound: leftOut,
    });
}
