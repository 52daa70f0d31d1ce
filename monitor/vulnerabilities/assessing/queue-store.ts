/** Which servers are assessed next. */
import { sql } from 'kysely';
import type { ScannedServer } from '#monitor/scans/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A server whose turn it is. */
export interface DueServer {
  clusterId: number;
  vmId: number;
  siteId: number;
  /** How many results of scans there were when it was read. */
  evidence: number;
  /** Its evidence changed, or our rules did; else only what the records say. */
  isChanged: boolean;
}

/** New evidence of a server, in the transaction of its result. */
export async function noteEvidence(
  trx: Queryable,
  { siteId, clusterId, vmId }: ScannedServer,
): Promise<void> {
  await sql`
    insert into vulnerability_servers as held (cluster_id, vm_id, site_id) values (${clusterId}, ${vmId}, ${siteId})
    on conflict (cluster_id, vm_id) do update set evidence = held.evidence + 1, site_id = excluded.site_id,
      due_at = least(held.due_at, svc_now())`.execute(trx);
}

/** Those that wait longest first, so that none waits for ever. */
export async function listDue(db: Queryable, rules: number, limit: number): Promise<DueServer[]> {
  const { rows } = await sql<DueServer>`
    select cluster_id as "clusterId", vm_id as "vmId", site_id as "siteId", evidence,
      evidence <> assessed or rules <> ${rules} or expires_at <= svc_now() as "isChanged"
    from vulnerability_servers where due_at <= svc_now() or rules <> ${rules}
    order by due_at, cluster_id, vm_id limit ${limit}`.execute(db);
  return rows;
}

/** A server that could not be assessed waits, and then is assessed whole; the others go on. */
export async function postpone(
  trx: Queryable,
  { clusterId, vmId }: DueServer,
  rules: number,
  seconds: number,
): Promise<void> {
  await sql`update vulnerability_servers set due_at = svc_now() + make_interval(secs => ${seconds}), rules = ${rules},
    assessed = -1 where cluster_id = ${clusterId} and vm_id = ${vmId}`.execute(trx);
}
