import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { lockSite } from '#monitor/sites/index.ts';
import { changedMembers, record, recorded } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { type ProbeChange, type ProbeInput, parseCadence, parseProbe, probesMax } from './probe.ts';
import { countProbes, findProbe, insertProbe, removeProbe, updateProbe } from './store.ts';

/** Adds a probe to a site. The lock on the site's row keeps concurrent calls within the limit. */
export async function addProbe(
  db: Queryable,
  actor: Actor,
  siteId: number,
  input: ProbeInput,
): Promise<number> {
  requireOperator(actor);
  const probe = parseProbe(input);
  return db.transaction().execute(async (trx) => {
    if (!(await lockSite(trx, siteId))) throw new CodedError('probes.no_site', 'This site does not exist.');
    if ((await countProbes(trx, siteId)) >= probesMax) {
      throw new CodedError('probes.too_many', `A site has at most ${probesMax} probes. Remove one first.`);
    }
    const id = await insertProbe(trx, siteId, probe);
    const subject = { kind: 'probe', id, name: probe.name };
    await record(trx, actor, { operation: 'probe.add', subject, after: { siteId, ...probe } });
    return id;
  });
}

export async function changeProbe(
  db: Queryable,
  actor: Actor,
  siteId: number,
  probeId: number,
  change: ProbeChange,
): Promise<boolean> {
  requireOperator(actor);
  const after = { ...parseCadence(change), isEnabled: change.isEnabled };
  return inTransaction(db, async (trx) => {
    const before = await findProbe(trx, siteId, probeId);
    if (!before || !(await updateProbe(trx, siteId, probeId, after))) return false;
    await record(trx, actor, {
      operation: 'probe.change',
      subject: { kind: 'probe', id: probeId, name: after.name },
      ...changedMembers(before, { ...before, ...after }),
    });
    return true;
  });
}

/** Sensors stop measuring it; its history stays. Returns false when the site has no such probe. */
export async function endProbe(
  db: Queryable,
  actor: Actor,
  siteId: number,
  probeId: number,
): Promise<boolean> {
  requireOperator(actor);
  return recorded(db, actor, { operation: 'probe.remove', subject: { kind: 'probe', id: probeId } }, (trx) =>
    removeProbe(trx, siteId, probeId),
  );
}
