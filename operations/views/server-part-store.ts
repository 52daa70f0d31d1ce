/** Parts of statements on servers: what the tables of other features say of them. */
import { type RawBuilder, sql } from 'kysely';

/** The image and the sizes of a server `s`, as a lateral row; none of these rows is locked with the server's. */
export const serverSizes: RawBuilder<unknown> = sql`
  select i.slug as "imageSlug", p.vcpus, p.memory_mb as "memoryMb", p.disk_gb as "diskGb"
  from images i, plans p where i.id = s.image_id and p.id = s.plan_id`;

/** The ids of the servers that hold room on a node. */
export const nodeServers = (nodeId: number): RawBuilder<unknown> => sql`
  select server_id from node_reservations where node_id = ${nodeId} and released_at is null`;

/** The location of a server `s`, as a lateral row. */
export const clusterLocation: RawBuilder<unknown> = sql`
  select c.location_id as "locationId" from clusters c where c.id = s.cluster_id`;
