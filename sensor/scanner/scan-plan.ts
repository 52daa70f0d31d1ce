/**
 * The scan plan of this sensor's node, fetched and never stored: a scan starts only by a plan that was fetched just now.
 */
import { Value } from 'typebox/value';
import { describeError } from '#common/errors/index.ts';
import { ScanPlan } from '#contracts/sensor-api/port-scans.ts';
import { type MonitorClient, refusalMessage } from '#sensor/monitor-client/index.ts';

/** NET-8.5: one fetch at a time, 15 seconds each. */
const fetchTimeoutMs = 15_000;
/** A plan of 4,096 targets and as many requests and withdrawals. */
const planBytesMax = 4 * 1024 * 1024;
/** Answers after which no scan may go on (NET-7.2). */
const endingStatuses = new Set([401, 403, 404, 410]);

export type FetchedPlan =
  | { kind: 'plan'; plan: ScanPlan }
  /** The monitor wants no scans of this sensor. */
  | { kind: 'refused'; status: number; why: string }
  /** Nothing is known now. */
  | { kind: 'trouble'; why: string };

/** Creates the function that fetches the plan; an unchanged one is not sent again. Never throws. */
export function createPlanFetcher(client: MonitorClient): (signal: AbortSignal) => Promise<FetchedPlan> {
  let known: { etag: string; plan: ScanPlan } | null = null;
  return async (signal) => {
    try {
      const answer = await client.request({
        ...{ method: 'GET', path: '/port-scans', timeoutMs: fetchTimeoutMs, signal },
        answerBytesMax: planBytesMax,
        ...(known ? { headers: { 'if-none-match': known.etag } } : {}),
      });
      if (answer.status === 304 && known) return { kind: 'plan', plan: known.plan };
      if (endingStatuses.has(answer.status)) {
        known = null;
        return { kind: 'refused', status: answer.status, why: refusalMessage(answer) };
      }
      if (answer.status !== 200) return { kind: 'trouble', why: refusalMessage(answer) };
      if (!Value.Check(ScanPlan, answer.json)) return { kind: 'trouble', why: 'the answer is no scan plan' };
      const etag = answer.headers.get('etag');
      known = etag === null ? null : { etag, plan: answer.json };
      return { kind: 'plan', plan: answer.json };
    } catch (error) {
      return { kind: 'trouble', why: describeError(error) };
    }
  };
}
