import { CodedError } from '#common/errors/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type ProbeChange, type ProbeInput, parseCadence, parseProbe, probesMax } from './probe.ts';
import { insertProbe, lockSite, updateProbe } from './store.ts';

/** Adds a probe to a site; the site's row lock keeps two who add at once within the bound. */
export async function addProbe(
  db: Queryable,
  actor: Actor,
  siteId: number,
  input: ProbeInput,
): Promise<number> {
  requireOperator(actor);
  const probe = parseProbe(input);
  return db.transaction().execute(async (trx) => {
    const count = await lockSite(trx, siteId);
    if (count === null) throw new CodedError('probes.no_site', 'There is no such site.');
    if (count >= probesMax) {
      throw new CodedError('probes.too_many', `A site has at most ${probesMax} probes. Remove one first.`);
    }
    return insertProbe(trx, siteId, probe);
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
  return updateProbe(db, siteId, probeId, { ...parseCadence(change), isEnabled: change.isEnabled });
}
