/**
 * Takes a sensor's report about one of its scans. Each counts once: by (scan, kind, `at`), and a scan has one result.
 *
 * A sensor reports on targets that its own plans named; the report counts for the server that the target named, also when
 * it arrives late. What a result found open is kept in the transaction of its receipt.
 */
import { CodedError } from '#common/errors/index.ts';
import { isIdentified, type ScanService } from '#contracts/port-scan/index.ts';
import type { ScanReceipt, ScanReport, ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import type { ScansDeps } from './index.ts';
import { closeUnseen, upsertIdentifications, upsertObservations } from './observation-store.ts';
import {
  findTarget,
  lockAttempt,
  type NamedTarget,
  type ReportedScan,
  writeHeartbeat,
  writeResult,
  writeStarted,
} from './plan-store.ts';
import { fromTargetId } from './read-plan.ts';

/** Throws `scans.unknown_target` and `scans.malformed`: the sensor must not send the report again. */
export async function receiveReport(
  { db, onResult }: Pick<ScansDeps, 'db' | 'onResult'>,
  sensorId: number,
  report: ScanReport,
): Promise<ScanReceipt> {
  const { scan_id, scan_request_id: requestId } = report;
  if (requestId !== null && requestId !== scan_id)
    throw new CodedError('scans.malformed', 'The scan of a request has the id of the request.');
  requireTimes(report);
  return inTransaction(db(), async (trx) => {
    const target = await requireTarget(trx, sensorId, report.target_id);
    const held = await lockAttempt(trx, sensorId, { scanId: scan_id, requestId }, target);
    const isSame =
      held.clusterId === target.clusterId &&
      held.serverId === target.serverId &&
      held.address === target.address;
    if (!isSame)
      throw new CodedError('scans.malformed', 'An earlier report of this scan was about another target.');
    if (isKnown(held, report)) return { scan_id, receipt: 'duplicate' };
    if (report.kind === 'started') await writeStarted(trx, sensorId, report, report.at);
    else if (report.kind === 'heartbeat') await writeHeartbeat(trx, sensorId, report, report.at);
    else {
      await takeResult(trx, sensorId, target, report);
      await onResult?.(trx, target);
    }
    return { scan_id, receipt: 'accepted' };
  });
}

/** The format of a time also has leap seconds and times that no clock here can hold. */
function requireTimes(report: ScanReport): void {
  const times = [report.at];
  if (report.kind === 'result') {
    times.push(report.started_at, report.finished_at);
    for (const one of report.services) times.push(one.first_observed_at, one.observed_at);
    for (const pause of report.pauses ?? []) times.push(pause.started_at, pause.ended_at);
  }
  if (times.every((time) => Date.parse(time) > 0)) return;
  throw new CodedError('scans.malformed', 'A time in the report is none that a clock can show.');
}

async function requireTarget(trx: Queryable, sensorId: number, text: string): Promise<NamedTarget> {
  const id = fromTargetId(text);
  const target = id === null ? null : await findTarget(trx, sensorId, id);
  if (target) return target;
  throw new CodedError('scans.unknown_target', 'No plan of this sensor named this target.');
}

/** Nothing follows a result, and a heartbeat that is not the newest changes nothing. */
function isKnown(held: ReportedScan, report: ScanReport): boolean {
  if (held.hasResult) return true;
  if (report.kind === 'started') return held.startedAtMs !== null;
  return (
    report.kind === 'heartbeat' &&
    held.heartbeatAtMs !== null &&
    Date.parse(report.at) <= Math.ceil(held.heartbeatAtMs)
  );
}

async function takeResult(trx: Queryable, sensorId: number, target: NamedTarget, report: ScanResult) {
  const services = cleanServices(report.services, await readNowMs(trx));
  // One of each transport: what follows takes each for the whole of it.
  const phases = [...new Map(report.phases.map((phase) => [phase.transport, phase])).values()];
  await writeResult(trx, sensorId, { ...report, phases }, report.at, services);
  const place = { ...target, sensorId, profile: report.profile };
  await upsertObservations(trx, place, services);
  await upsertIdentifications(trx, place, services.filter(isIdentified));
  // A partial scan did not ask everything, so it closes nothing (NET-2.7.10).
  if (report.state !== 'complete') return;
  for (const { transport, finished } of phases) {
    if (!finished) continue;
    const openPorts = services.filter((one) => one.transport === transport).map(({ port }) => port);
    const { started_at: startedAt, finished_at: finishedAt } = report;
    await closeUnseen(trx, place, { transport, openPorts, startedAt, finishedAt });
  }
}

/** One entry for each port, and texts that can be stored and shown: a service writes what it likes. */
function cleanServices(services: readonly ScanService[], nowMs: number): ScanService[] {
  // A clock that is ahead observed now.
  const notAhead = (text: string) => new Date(Math.min(Date.parse(text), nowMs)).toISOString();
  const byPort = new Map<string, ScanService>();
  for (const one of services) {
    byPort.set(`${one.transport} ${one.port}`, {
      ...one,
      first_observed_at: notAhead(one.first_observed_at),
      observed_at: notAhead(one.observed_at),
      service: cleanText(one.service),
      product: cleanText(one.product),
      version: cleanText(one.version),
      extra_info: cleanText(one.extra_info),
      tunnel: cleanText(one.tunnel),
      cpe: one.cpe.flatMap((text) => cleanText(text) ?? []),
    });
  }
  return [...byPort.values()];
}

/** Without control characters, which PostgreSQL or a page could not take, and marks that reverse the text beside it. */
function cleanText(text: string | null): string | null {
  const cleaned = text?.replace(/[\p{Cc}\p{Cs}\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, ' ').trim();
  return cleaned ? cleaned : null;
}
