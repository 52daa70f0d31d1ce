/** Of which cluster a change of a server is, as a query that the insert of the change takes its row from. */
import { sql } from 'kysely';

/** No row for a server that is still being made, is being destroyed or is gone. */
export function serverChangeRow(serverId: number, kind: string) {
  return sql`select cluster_id, id, ${kind}::text from servers
    where id = ${serverId} and provisioning_state = 'ready'`;
}
