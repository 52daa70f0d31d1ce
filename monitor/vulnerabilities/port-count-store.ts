/** Findings beside open ports, for lists of ports (NET-2.7.12). */
import { sql } from 'kysely';
import { ratedSeverities } from '#contracts/findings.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { countsByRating, isIgnored } from './ignores/open-ignore-store.ts';
import type { FindingCounts } from './read-store.ts';

/** An open port that was assessed. */
export interface PortFindings extends FindingCounts {
  clusterId: number;
  vmId: number;
  address: string;
  transport: string;
  port: number;
  /** Among the counts of active ones they are not. */
  ignored: number;
  /** It can't be assessed, so it has none. */
  isUnable: boolean;
}

const counted = [...ratedSeverities, 'unrated'];

/** Of these servers. */
export async function listPortFindings(
  db: Queryable,
  servers: readonly { clusterId: number; vmId: number }[],
): Promise<PortFindings[]> {
  const clusters = servers.map(({ clusterId }) => clusterId);
  const vms = servers.map(({ vmId }) => vmId);
  // Versions are counted as they are stored; only findings that an ignore names are looked at one by one.
  const { rows } = await sql<PortFindings>`
    select v.cluster_id as "clusterId", v.vm_id as "vmId", host(v.address) as address, v.transport, v.port,
      v.reason is not null as "isUnable",
      ${sql.join(
        counted.map(
          (name) =>
            sql`case when v.reason is null then coalesce(${sql.ref(`w.${name}`)}, 0) - ${sql.ref(`g.${name}`)} else 0 end as ${sql.ref(name)}`,
        ),
      )},
      case when v.reason is null then ${sql.join(
        counted.map((name) => sql.ref(`g.${name}`)),
        sql` + `,
      )} else 0 end as ignored
    from unnest(${clusters}::bigint[], ${vms}::bigint[]) as wanted(cluster_id, vm_id)
    join vulnerability_services v on v.cluster_id = wanted.cluster_id and v.vm_id = wanted.vm_id
    left join vulnerability_software w on w.id = v.software_id
    cross join lateral (
      select ${countsByRating}
      from vulnerability_findings f
      where f.software_id = v.software_id
        and f.cve in (select i.cve from vulnerability_ignores i where i.cluster_id = v.cluster_id and i.vm_id = v.vm_id)
        and ${isIgnored}) g`.execute(db);
  return rows;
}
