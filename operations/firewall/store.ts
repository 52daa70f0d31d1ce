/** Statements on firewalls and their rules. Owners are filtered here. */

import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Firewall, Rule, StoredRule } from './firewall.ts';

/** Null for a server whose firewall was never touched. */
export async function findFirewall(db: Queryable, serverId: number): Promise<Firewall | null> {
  const { rows } = await sql<Firewall>`
    select f.server_id, f.enabled as is_enabled, f.inbound_policy, f.outbound_policy, f.version, f.status,
      f.applied_at,
      coalesce((select json_agg(json_build_object('id', r.id, 'position', r.position, 'direction', r.direction,
          'action', r.action, 'protocol', r.protocol, 'ports', r.ports, 'peers', r.peers,
          'description', r.description) order by r.position)
        from firewall_rules r where r.server_id = f.server_id), '[]') as rules
    from firewalls f where f.server_id = ${serverId}`.execute(db);
  return rows[0] ?? null;
}

/** Writes the whole firewall; rules that carry an id keep it. Returns the new version. */
export async function putFirewall(
  tx: Queryable,
  serverId: number,
  firewall: Pick<Firewall, 'isEnabled' | 'inboundPolicy' | 'outboundPolicy'>,
  rules: readonly (Rule & { id?: number })[],
): Promise<void> {
  await sql`insert into firewalls as kept (server_id, enabled, inbound_policy, outbound_policy)
    values (${serverId}, ${firewall.isEnabled}, ${firewall.inboundPolicy}, ${firewall.outboundPolicy})
    on conflict (server_id) do update set enabled = excluded.enabled, inbound_policy = excluded.inbound_policy,
      outbound_policy = excluded.outbound_policy, version = kept.version + 1, status = 'pending',
      updated_at = svc_now()`.execute(tx);
  const kept = rules.flatMap((rule) => rule.id ?? []);
  await sql`delete from firewall_rules
    where server_id = ${serverId} and not id = any(${kept}::bigint[])`.execute(tx);
  for (const [index, rule] of rules.entries()) await putRule(tx, serverId, index + 1, rule);
}

async function putRule(
  tx: Queryable,
  serverId: number,
  position: number,
  rule: Rule & { id?: Partial<StoredRule>['id'] },
): Promise<void> {
  if (rule.id !== undefined) {
    await sql`update firewall_rules set position = ${position}, direction = ${rule.direction},
        action = ${rule.action}, protocol = ${rule.protocol}, ports = ${rule.ports},
        peers = ${[...rule.peers]}::text[], description = ${rule.description}
      where id = ${rule.id} and server_id = ${serverId}`.execute(tx);
    return;
  }
  await sql`insert into firewall_rules
      (server_id, position, direction, action, protocol, ports, peers, description)
    values (${serverId}, ${position}, ${rule.direction}, ${rule.action}, ${rule.protocol}, ${rule.ports},
      ${[...rule.peers]}::text[], ${rule.description})`.execute(tx);
}

/**
 * Notes what came of this version; null when there is a newer one, which stays as it is. `isNews`: it had not been applied
 * before.
 */
export async function noteApplied(
  tx: Queryable,
  serverId: number,
  version: number,
  status: 'applied' | 'failed',
): Promise<{ isNews: boolean } | null> {
  const { rows } = await sql<{ isNews: boolean }>`
    with before as (
      select server_id, applied_version from firewalls
      where server_id = ${serverId} and version = ${version} for update)
    update firewalls f set status = ${status},
      applied_version = case when ${status} = 'applied' then version else f.applied_version end,
      applied_at = case when ${status} = 'applied' then svc_now() else applied_at end
    from before where f.server_id = before.server_id
    returning ${status} = 'applied' and before.applied_version is distinct from f.version as is_news`.execute(
    tx,
  );
  return rows[0] ?? null;
}
