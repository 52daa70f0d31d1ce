/** Verdicts on who speaks for whom, again after the inventory has changed. */
import type { ChangedAddress } from '#monitor/placements/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { IncidentsDeps } from './deps.ts';
import { judgeOwnership } from './judge-ownership.ts';
import { regroup } from './regroup.ts';
import * as store from './store.ts';

/**
 * Judges observations of these addresses again, in the transaction that changed their placements. An incident that was made
 * by another node's sensor is withdrawn; one that was kept as foreign counts from now on.
 */
export async function rejudgeAddresses(
  deps: Pick<IncidentsDeps, 'events' | 'onChange'>,
  trx: Queryable,
  changed: readonly ChangedAddress[],
): Promise<void> {
  if (changed.length === 0) return;
  const rows = await store.listRowsOfAddresses(trx, changed);
  if (rows.length === 0) return;
  await store.lockSites(trx, [...new Set(rows.map(({ siteId }) => siteId))]);
  const verdicts = await judgeOwnership(trx, rows);
  const judged = rows.map((row, i) => ({ ...row, ...verdicts[i]!, was: row.isForeign }));
  const formerIds = await store.listIncidentsOf(
    trx,
    judged.map(({ rowId }) => rowId),
  );
  // Of one observation each verdict has at most one row; the higher revision stays.
  const lower = [...Map.groupBy(judged, ({ sensorId, said }) => `${sensorId} ${said.id}`).values()].flatMap(
    (rowsOfOne) => {
      const [first, second] = rowsOfOne.toSorted((a, b) => b.said.revision - a.said.revision);
      const isSame = first!.isForeign === first!.was && second?.isForeign === second?.was;
      return second === undefined || isSame ? [] : [second.rowId];
    },
  );
  await store.deleteObservations(trx, lower);
  const kept = judged.filter(({ rowId }) => !lower.includes(rowId));
  await store.changeVerdicts(
    trx,
    kept.filter(({ isForeign, was, key, targetKey }) => isForeign !== was || key.targetKey !== targetKey),
  );
  // All of them: where an incident's target has left the node it may be over.
  const own = kept.filter(({ isForeign }) => !isForeign).map(({ rowId }) => rowId);
  await regroup(deps, trx, own, formerIds);
}
