/** Faults that the proof of the scan ledger plants in the ledger's statements, and what the ledger says is stored. */
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { type AttemptRow, LedgerStore, type ReportRow } from '#sensor/scanner/ledger.ts';

export const ledgerFaults = [
  'attempt_written_after_the_first_packet',
  'positives_kept_in_memory',
  'removed_before_the_receipt',
  'sent_again_under_a_new_time',
  'result_written_after_the_end',
  'interrupted_attempts_forgotten',
  'interrupted_attempts_never_ended',
  'interrupted_called_complete',
] as const;
export type LedgerFault = (typeof ledgerFaults)[number];

const store = LedgerStore.prototype;
const lateMs = 40;

/** Prints positives once they are stored, and reports once they are removed. Call it after a fault was planted. */
export function announceLedger(): void {
  const { updateBody, nextReport, removeReport } = store;
  let next: ReportRow | null = null;
  store.updateBody = function (scanId, body) {
    updateBody.call(this, scanId, body);
    const { services } = JSON.parse(body) as ScanResult;
    say('noted', scanId, services.map(({ transport, port }) => `${transport}/${port}`).join(','));
  };
  store.nextReport = function () {
    next = nextReport.call(this);
    return next;
  };
  store.removeReport = function (id) {
    removeReport.call(this, id);
    const { kind, at } = JSON.parse(next!.body) as ScanResult;
    say('removed', next!.scanId, `${kind}@${at}`);
  };
}

function say(...words: string[]): void {
  process.stdout.write(`${words.join(' ')}\n`);
}

/** Plants the fault. The function that it returns is called before the first process of a scan starts. */
export function plantFault(fault: LedgerFault | null): () => void {
  switch (fault) {
    case 'attempt_written_after_the_first_packet':
      return writeAttemptsLate();
    case 'positives_kept_in_memory':
      store.updateBody = () => {};
      break;
    case 'removed_before_the_receipt':
      changeNext((row, from) => {
        from.removeReport(row.id);
        return row;
      });
      break;
    case 'sent_again_under_a_new_time':
      changeNext((row) => {
        const at = new Date(Date.parse(JSON.parse(row.body).at) + process.pid).toISOString();
        return { ...row, body: JSON.stringify({ ...JSON.parse(row.body), at }) };
      });
      break;
    case 'result_written_after_the_end':
      writeResultsLate();
      break;
    case 'interrupted_attempts_forgotten':
      store.openAttempts = () => [];
      break;
    case 'interrupted_attempts_never_ended':
      store.endAttempt = () => {};
      break;
    case 'interrupted_called_complete':
      callComplete();
      break;
    default:
  }
  return () => {};
}

function writeAttemptsLate(): () => void {
  const { insertAttempt } = store;
  const late: (() => void)[] = [];
  store.insertAttempt = function (row: AttemptRow) {
    late.push(() => insertAttempt.call(this, row));
  };
  return () => void setTimeout(() => late.shift()?.(), lateMs);
}

function changeNext(change: (row: ReportRow, from: LedgerStore) => ReportRow): void {
  const { nextReport } = store;
  store.nextReport = function () {
    const row = nextReport.call(this);
    return row && change(row, this);
  };
}

function writeResultsLate(): void {
  const { insertReport } = store;
  store.insertReport = function (scanId, body) {
    const isResult = JSON.parse(body).kind === 'result';
    if (isResult) setTimeout(() => insertReport.call(this, scanId, body), lateMs);
    else insertReport.call(this, scanId, body);
  };
}

function callComplete(): void {
  const { openAttempts } = store;
  store.openAttempts = function () {
    const complete = (body: string) => body.replace('"state":"partial"', '"state":"complete"');
    return openAttempts.call(this).map((row) => ({ ...row, body: complete(row.body) }));
  };
}
