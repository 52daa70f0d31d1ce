/** What both programs know by the wire, and the path under which each shows its page of it. */

export type Place =
  | { kind: 'server'; clusterId: number; serverId: number }
  | { kind: 'address'; address: string }
  /** `accountId`: the billing account that operations names in its targets. */
  | { kind: 'customer'; accountId: number }
  | { kind: 'incident'; incidentId: string };

/** The path of a place at the other program, which answers with its page or says why there is none. */
export function placePath(place: Place): string {
  switch (place.kind) {
    case 'server':
      return `/find/server?cluster_id=${place.clusterId}&server_id=${place.serverId}`;
    case 'address':
      return `/find/address?address=${encodeURIComponent(place.address)}`;
    case 'customer':
      return `/find/customer?account_id=${place.accountId}`;
    case 'incident':
      return `/find/incident?incident_id=${encodeURIComponent(place.incidentId)}`;
  }
}
