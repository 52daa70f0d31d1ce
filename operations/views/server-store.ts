/** A server with everything that its view shows. */
import { CompiledQuery } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';
import type { Server } from './server.ts';

/** A moment as RFC 3339 text. */
export const rfc3339 = (column: string) =>
  `to_char(${column} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

/** The columns of an action, by the names of `ServerAction`. */
export const actionFields = `
  id, server_id as "serverId", command, status, progress, changed, outcome, error,
  requested_by_key as "requestedByKey", ${rfc3339('created_at')} as "createdAt", ${rfc3339('started_at')} as "startedAt",
  ${rfc3339('finished_at')} as "finishedAt"`;

/** Public addresses of the server `s`, the primary one first. */
const addresses = `
  select json_agg(json_build_object('address', host(a.address), 'family', family(a.address),
      'prefixLength', a.prefix_length, 'gateway', host(a.gateway), 'isPrimary', a.is_primary,
      'reverseDns', a.reverse_dns) order by a.is_primary desc, a.id)
  from allocations a where a.server_id = s.id and a.released_at is null`;

/** True for the interface `a` of the server `s` where nothing else leads to it: one that is being attached may fail yet. */
export const isLastInterface = `not s.has_public_ip and a.state <> 'detaching' and not exists (
    select 1 from network_attachments o where o.server_id = s.id and o.id <> a.id and o.state = 'attached')`;

/** Network interfaces of the server `s` on private networks. */
const privateNetworks = `
  select json_agg(json_build_object('serverId', a.server_id, 'networkId', a.network_id, 'name', n.name,
      'cidr', n.cidr::text, 'ip', host(a.ip), 'macAddress', a.mac_address, 'state', a.state, 'error', a.error,
      'isLastInterface', ${isLastInterface},
      'requiresReboot', a.requires_reboot, 'attachedAt', ${rfc3339('a.attached_at')}) order by a.id)
  from network_attachments a join private_networks n on n.id = a.network_id
  where a.server_id = s.id`;

const firewall = `
  select json_build_object('isEnabled', f.enabled, 'status', f.status,
    'ruleCount', (select count(*) from firewall_rules r where r.server_id = f.server_id))
  from firewalls f where f.server_id = s.id`;

/** The action that is under way; there is at most one. */
const currentAction = `
  select row_to_json(x) from (select ${actionFields} from server_actions
    where server_id = s.id and status in ('queued', 'running')) x`;

/** Plan `p`, image `i`, cluster `c` and location `l` of the server `s`. */
const catalogJoins = `
  join plans p on p.id = s.plan_id
  join images i on i.id = s.image_id
  join clusters c on c.id = s.cluster_id
  join locations l on l.id = c.location_id`;

const catalogFields = `
  p.id as "planId", p.slug as "planSlug", p.name as "planName", p.vcpus, p.memory_mb as "memoryMb",
  p.disk_gb as "diskGb", i.id as "imageId", i.slug as "imageSlug", i.name as "imageName", i.family as "imageFamily",
  c.id as "clusterId", c.name as "clusterName", l.id as "locationId", l.slug as "locationSlug", l.name as "locationName", l.country`;

const ownFields = `
  s.id, s.tenant_id as "tenantId", s.order_id as "orderId", s.name, s.hostname,
  s.provisioning_state as "provisioningState", s.power_state as "powerState", s.failure, s.labels, s.node,
  s.hourly_quanta as "hourlyQuanta", s.monthly_cap_quanta as "monthlyCapQuanta", s.created_at as "createdAt",
  s.provisioned_at as "provisionedAt", s.status_changed_at as "statusChangedAt", s.updated_at as "updatedAt",
  s.has_public_ip as "hasPublicIp"`;

// One statement brings everything that a server's view shows: the read that customers make most costs one round trip.
export const serverText = `
  select ${ownFields}, ${catalogFields}, coalesce((${addresses}), '[]') as addresses,
    coalesce((${privateNetworks}), '[]') as "privateNetworks", (${firewall}) as firewall,
    (${currentAction}) as "currentAction"
  from servers s ${catalogJoins}`;

export async function findServer(db: Queryable, scope: Scope, serverId: number): Promise<Server | null> {
  const ofOwner = scope === 'all' ? 'true' : 's.tenant_id = any($2::bigint[])';
  const text = `${serverText} where s.id = $1 and ${ofOwner} and s.provisioning_state <> 'deleted'`;
  const values = scope === 'all' ? [serverId] : [serverId, scope];
  return (await db.executeQuery<Server>(CompiledQuery.raw(text, values))).rows[0] ?? null;
}
