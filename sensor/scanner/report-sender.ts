/** Sends reports of scans, oldest first; each stays in the ledger until the monitor gave a receipt or refused it for good. */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { backoffMs } from '#common/retry/index.ts';
import { errorCode, type MonitorClient, refusalMessage, retryAfterMs } from '#sensor/monitor-client/index.ts';
import type { Ledger } from './ledger.ts';

/** NET-8.5: how long an upload waits for its receipt, and how long at least a look for reports rests. */
const receiptTimeoutMs = 45_000;
const idleMs = 5000;
const backoff = { firstMs: 5000, maxMs: 300_000 };
const heartbeatTimeoutMs = 5000;

export type ReportSender = ReturnType<typeof createReportSender>;

/** Creates the sender. */
export function createReportSender({
  client,
  ledger,
  clock,
  reporter,
}: {
  client: MonitorClient;
  ledger: Ledger;
  clock: Clock;
  reporter: Reporter;
}) {
  let nap = new AbortController();
  let isFailing = false;

  function post(body: string, timeoutMs: number, signal: AbortSignal) {
    const headers = { 'content-type': 'application/json' };
    return client.request({ method: 'POST', path: '/port-scans', headers, body, timeoutMs, signal });
  }

  /** Returns what went wrong, or null when the report needs no further attempt. */
  async function send(scanId: string, body: string, signal: AbortSignal) {
    const answer = await post(body, receiptTimeoutMs, signal);
    if (answer.status === 200) {
      const receipt = answer.json as { scan_id?: unknown; receipt?: unknown } | null;
      const isReceipt =
        receipt?.scan_id === scanId && (receipt.receipt === 'accepted' || receipt.receipt === 'duplicate');
      return isReceipt ? null : { why: 'the answer is no receipt for this report', waitMs: 0 };
    }
    const isFinal = [400, 413, 422].includes(answer.status) && errorCode(answer) !== null;
    if (!isFinal) return { why: refusalMessage(answer), waitMs: retryAfterMs(answer) };
    reporter.warn('the monitor refused a report of a scan', { scan: scanId, why: refusalMessage(answer) });
    return null;
  }

  /**
   * Sends the oldest report and removes it. Throws also where the ledger can not be written: the report goes again then, and
   * the monitor knows it.
   */
  async function sendNext(signal: AbortSignal) {
    const report = ledger.nextReport();
    if (report === null) return 'nothing waits';
    const fault = await send(report.scanId, report.body, signal);
    if (fault === null) ledger.removeReport(report.id);
    return fault;
  }

  return {
    /** Sends until the signal is aborted. */
    async run(signal: AbortSignal) {
      let failures = 0;
      while (!signal.aborted) {
        const fault = await sendNext(signal).catch((error) => ({ why: describeError(error), waitMs: 0 }));
        if (fault === 'nothing waits') {
          nap = new AbortController();
          await clock.wait(idleMs, AbortSignal.any([signal, nap.signal]));
          continue;
        }
        if (fault === null) {
          failures = 0;
          if (isFailing) reporter.info('reports of scans are sent again');
          isFailing = false;
          continue;
        }
        if (signal.aborted) return;
        failures += 1;
        if (!isFailing) reporter.warn('reports of scans wait', { why: fault.why });
        isFailing = true;
        await clock.wait(Math.max(fault.waitMs, backoffMs(backoff, failures)), signal);
      }
    },
    /** A report was added. */
    wake: () => nap.abort(),
    /** Sends a heartbeat once; it is worth nothing later. */
    async offer(heartbeat: object, signal: AbortSignal) {
      if (isFailing) return;
      await post(JSON.stringify(heartbeat), heartbeatTimeoutMs, signal).catch(() => null);
    },
  };
}
