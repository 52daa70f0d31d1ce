/** Findings of severity high and critical of which operators are told, each once. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { isIgnored } from '../ignores/open-ignore-store.ts';
import type { ServerKey } from './server-store.ts';

/** An active finding that was not noted before. */
export interface NewFinding extends ServerKey {
  transport: string;
  port: number;
  fingerprint: string;
  product: string | null;
  version: string | null;
  cve: string;
  /** `high` or `critical`. */
  rating: string | null;
  score: number | null;
  isKnownExploited: boolean;
}

/**
 * Notes the new findings of these servers and returns them, the most severe first. The same software at a port of two addresses
 * of a server counts once; software whose findings are all noted is passed over without reading them.
 */
export async function noteFindings(trx: Queryable, servers: readonly ServerKey[]): Promise<NewFinding[]> {
  const { rows } = await sql<NewFinding>`
    select distinct on (v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint, f.cve) v.cluster_id as "clusterId",
      v.vm_id as "vmId", v.transport, v.port, v.fingerprint, v.product, v.version, f.cve, f.rating, f.score,
      f.is_known_exploited as "isKnownExploited"
    from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ vmId }) => vmId)}::bigint[])
      as page(cluster_id, vm_id)
    join vulnerability_services v on v.cluster_id = page.cluster_id and v.vm_id = page.vm_id and v.reason is null
    join vulnerability_software w on w.id = v.software_id and w.severe <> '{}'
    left join vulnerability_noted n on n.cluster_id = v.cluster_id and n.vm_id = v.vm_id and n.transport = v.transport
      and n.port = v.port and n.fingerprint = v.fingerprint
    join vulnerability_findings f on f.software_id = v.software_id and f.rating in ('high', 'critical')
    where (n.cves is null or not w.severe <@ n.cves) and (n.cves is null or f.cve <> all(n.cves)) and not ${isIgnored}
    order by v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint, f.cve`.execute(trx);
  await sql`
    insert into vulnerability_noted as held (cluster_id, vm_id, transport, port, fingerprint, cves)
    select "clusterId", "vmId", transport, port, fingerprint, array_agg(cve order by cve)
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as g("clusterId" bigint, "vmId" bigint, transport text,
      port integer, fingerprint text, cve text)
    group by 1, 2, 3, 4, 5 order by 1, 2, 3, 4, 5
    on conflict (cluster_id, vm_id, transport, port, fingerprint) do update set cves = held.cves || excluded.cves`.execute(
    trx,
  );
  const order = ({ isKnownExploited, score }: NewFinding) => (isKnownExploited ? 100 : 0) + (score ?? 0);
  return rows.sort((a, b) => order(b) - order(a) || (a.cve < b.cve ? -1 : 1));
}

/** Active findings of a server by severity. */
export interface SevereCount extends ServerKey {
  siteId: number;
  critical: number;
  high: number;
}

export async function countSevere(trx: Queryable, servers: readonly ServerKey[]): Promise<SevereCount[]> {
  const { rows } = await sql<SevereCount>`
    select s.cluster_id as "clusterId", s.vm_id as "vmId", s.site_id as "siteId", s.critical, s.high
    from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ vmId }) => vmId)}::bigint[])
      as page(cluster_id, vm_id)
    join vulnerability_servers s on s.cluster_id = page.cluster_id and s.vm_id = page.vm_id
    order by s.cluster_id, s.vm_id`.execute(trx);
  return rows;
}
