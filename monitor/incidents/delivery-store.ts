/** What operations has of incidents. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Incident } from './incident.ts';
import { type IncidentRow, incidentColumns, toIncident } from './incident-columns-store.ts';

export interface DeliverableIncident extends Incident {
  /** Operations has not answered about this revision. */
  isPending: boolean;
}

/** An answer of operations about a revision. */
export interface Delivery {
  id: string;
  revision: number;
  outcome: string;
}

/** More are delivered by the next ticks; the oldest changes first. */
const listedMax = 10_000;

/** Host incidents of these sites that are pending or active. An attack that turned out to be of another node's server is never new here. */
export async function listDeliverable(
  db: Queryable,
  siteIds: readonly number[],
): Promise<DeliverableIncident[]> {
  const { rows } = await sql<IncidentRow & { isPending: boolean }>`
    select ${incidentColumns}, i.delivered_revision < i.revision as "isPending" from incidents i
    where i.site_id = any(${[...siteIds]}::bigint[]) and i.target_kind = 'host' and (i.delivered_revision < i.revision or i.state = 'active')
      and not (i.is_withdrawn and i.delivered_revision = 0)
    order by i.delivered_revision = i.revision, i.changed_at, i.id limit ${listedMax}`.execute(db);
  return rows.map(({ isPending, ...row }) => ({ ...toIncident(row), isPending }));
}

export async function noteDelivered(trx: Queryable, delivered: readonly Delivery[]): Promise<void> {
  await sql`
    update incidents i set delivered_revision = greatest(i.delivered_revision, g.revision), delivered_at = svc_now(),
      delivery_outcome = g.outcome
    from jsonb_to_recordset(${JSON.stringify(delivered)}::jsonb) as g(id uuid, revision int, outcome text)
    where i.id = g.id`.execute(trx);
}
