/** What was done against incidents, as operations is told of it. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { IncidentAction } from './incident.ts';

/**
 * Replaces the actions of incidents; one that changes gets a higher revision and is delivered again. The caller holds the
 * lock of their site (`lockSites`), or a revision could be given twice.
 */
export async function setIncidentActions(
  trx: Queryable,
  given: readonly { id: string; actions: readonly IncidentAction[] }[],
): Promise<void> {
  await sql`
    update incidents i set actions = g.actions, revision = i.revision + 1, changed_at = svc_now()
    from jsonb_to_recordset(${JSON.stringify(given)}::jsonb) as g(id uuid, actions jsonb)
    where i.id = g.id and i.actions <> g.actions`.execute(trx);
}
