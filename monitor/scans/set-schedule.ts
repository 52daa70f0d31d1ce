import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction } from '#service-kit/postgres/index.ts';
import type { ScansDeps } from './deps.ts';
import { readSchedule, writeSchedule } from './plan-store.ts';
import { parseSchedule, type ScanSchedule } from './schedule.ts';

/** Sets when the daily full scans of a site begin; sensors follow with their next plan. Throws `scans.invalid`, `scans.no_site`. */
export async function setSchedule(
  { db, sites }: Pick<ScansDeps, 'db' | 'sites'>,
  actor: Actor,
  siteId: number,
  given: ScanSchedule,
): Promise<void> {
  requireOperator(actor);
  const { time, zone } = parseSchedule(given);
  const site = await sites.find(siteId);
  await inTransaction(db(), async (trx) => {
    if (!site || !(await lockSite(trx, siteId)))
      throw new CodedError('scans.no_site', 'This site does not exist.');
    const before = await readSchedule(trx, siteId);
    await writeSchedule(trx, siteId, { time, zone }, actor.name ?? actor.kind);
    await record(trx, actor, {
      operation: 'site.set_full_scan_time',
      subject: { kind: 'site', id: siteId, name: site.name },
      before: { time: before.time, zone: before.zone },
      after: { time, zone },
    });
  });
}
