import { sql } from 'kysely';
import { ratedSeverities } from '#contracts/findings.ts';

/** An ignore `i` that is in force. */
export const isOpenIgnore = sql`i.ended_at is null and (i.until is null or i.until > svc_now())`;

/**
 * Whether an ignore `i` is about a service `v`: the server, the address, the port and the software must be the same, so nothing is
 * inherited by another server, another allocation or another version (NET-2.6.5).
 */
export const isOfIgnore = sql`v.cluster_id = i.cluster_id and v.vm_id = i.vm_id and v.address = i.address
  and v.transport = i.transport and v.port = i.port and v.fingerprint = i.fingerprint`;

/** Whether a finding `f` of a service `v` is ignored. */
export const isIgnored = sql`exists (
  select from vulnerability_ignores i where ${isOfIgnore} and i.cve = f.cve and ${isOpenIgnore})`;

/** Columns that count findings `f` by their rating. */
export const countsByRating = sql.join([
  ...ratedSeverities.map(
    (rating) => sql`count(*) filter (where f.rating = ${sql.lit(rating)})::int as ${sql.ref(rating)}`,
  ),
  sql`count(*) filter (where f.rating is null or f.rating = 'none')::int as unrated`,
]);
