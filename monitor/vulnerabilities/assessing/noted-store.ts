/** Severe findings of which operators are told, each once for a server, port and software. */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { isIgnored } from '../ignores/store.ts';
import type { ServerKey } from './server-store.ts';

/** Findings of a service that were not noted before, and the most severe of them. */
export interface NewFindings extends ServerKey {
  transport: string;
  port: number;
  product: string | null;
  version: string | null;
  found: number;
  cve: string;
  score: number | null;
  isKnownExploited: boolean;
}

/**
 * Notes the new findings of these servers and returns them, the most severe first. The same software at a port of two addresses of a
 * server counts once. Services whose software has nothing new are passed over without reading its findings; a service that is
 * seen for the first time has all of its software's, which are counted already.
 */
export async function noteFindings(trx: Queryable, servers: readonly ServerKey[]): Promise<NewFindings[]> {
  const { rows } = await sql<NewFindings>`
    with fresh as materialized (
      select distinct on (v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint) v.*, w.severe, w.severe_seq, w.worst_cve,
        coalesce(n.seq, 0) as told, n.seq is null and s.ignored = 0 as has_all
      from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ serverId }) => serverId)}::bigint[])
        as page(cluster_id, vm_id)
      join vulnerability_servers s on s.cluster_id = page.cluster_id and s.vm_id = page.vm_id
      join vulnerability_services v on v.cluster_id = page.cluster_id and v.vm_id = page.vm_id and v.reason is null
      join vulnerability_software w on w.id = v.software_id and w.severe > 0
      left join vulnerability_noted n on n.cluster_id = v.cluster_id and n.vm_id = v.vm_id and n.transport = v.transport
        and n.port = v.port and n.fingerprint = v.fingerprint
      where w.severe_seq > coalesce(n.seq, 0)
      order by v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint, v.address),
    noting as (
      insert into vulnerability_noted (cluster_id, vm_id, transport, port, fingerprint, software_id, seq)
      select cluster_id, vm_id, transport, port, fingerprint, software_id, severe_seq from fresh
      on conflict (cluster_id, vm_id, transport, port, fingerprint) do update set software_id = excluded.software_id,
        seq = excluded.seq),
    newer as (
      select cluster_id, vm_id, transport, port, product, version, software_id, severe as found, worst_cve as cve
      from fresh where has_all
      union all
      select v.cluster_id, v.vm_id, v.transport, v.port, v.product, v.version, v.software_id, c.found, c.cve
      from fresh v cross join lateral (
        select count(*)::int as found, (array_agg(f.cve order by f.place))[1] as cve from vulnerability_severe x
        join vulnerability_findings f on f.software_id = x.software_id and f.cve = x.cve
        where x.software_id = v.software_id and x.seq > v.told and not ${isIgnored}) c
      where not v.has_all and c.found > 0)
    select g.cluster_id, g.vm_id as server_id, g.transport, g.port, g.product, g.version, g.found, f.cve, f.score,
      f.is_known_exploited
    from newer g join vulnerability_findings f on f.software_id = g.software_id and f.cve = g.cve
    order by f.is_known_exploited desc, f.score desc nulls last, g.cluster_id, g.vm_id, g.transport, g.port`.execute(
    trx,
  );
  return rows;
}

/** All active findings of these severities of these servers, service by service, the most severe first. */
export async function listActive(
  trx: Queryable,
  servers: readonly ServerKey[],
  severe: readonly string[],
): Promise<NewFindings[]> {
  if (servers.length === 0) return [];
  const { rows } = await sql<NewFindings>`
    with active as (
      select distinct on (v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint) v.*, c.found, c.cve
      from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ serverId }) => serverId)}::bigint[])
        as page(cluster_id, vm_id)
      join vulnerability_services v on v.cluster_id = page.cluster_id and v.vm_id = page.vm_id and v.reason is null
      cross join lateral (
        select count(*)::int as found, (array_agg(f.cve order by f.place))[1] as cve from vulnerability_findings f
        where f.software_id = v.software_id and f.rating = any(${[...severe]}::text[]) and not ${isIgnored}) c
      where c.found > 0 order by v.cluster_id, v.vm_id, v.transport, v.port, v.fingerprint, v.address)
    select g.cluster_id, g.vm_id as server_id, g.transport, g.port, g.product, g.version, g.found, f.cve, f.score,
      f.is_known_exploited
    from active g join vulnerability_findings f on f.software_id = g.software_id and f.cve = g.cve
    order by f.is_known_exploited desc, f.score desc nulls last, g.cluster_id, g.vm_id, g.transport, g.port`.execute(
    trx,
  );
  return rows;
}

/** Active findings of a server by severity. */
export interface SevereCount extends ServerKey {
  siteId: number;
  critical: number;
  high: number;
}

export async function countSevere(trx: Queryable, servers: readonly ServerKey[]): Promise<SevereCount[]> {
  const { rows } = await sql<SevereCount>`
    select s.cluster_id, s.vm_id as server_id, s.site_id, s.critical, s.high
    from unnest(${servers.map(({ clusterId }) => clusterId)}::bigint[], ${servers.map(({ serverId }) => serverId)}::bigint[])
      as page(cluster_id, vm_id)
    join vulnerability_servers s on s.cluster_id = page.cluster_id and s.vm_id = page.vm_id
    order by s.cluster_id, s.vm_id`.execute(trx);
  return rows;
}
