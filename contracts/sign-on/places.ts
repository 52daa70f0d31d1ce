/** What both programs know by the wire, and the path under which each shows its page of it. */

export type Place =
  | { kind: 'server'; clusterId: number; serverId: number }
  | { kind: 'address'; address: string }
  /** `accountId`: the billing account that operations names in its targets. */
  | { kind: 'customer'; accountId: number }
  | { kind: 'incident'; incidentId: string };

/** The range of a page, as its URL names it. */
export type PlaceRange = Readonly<Partial<Record<'range' | 'from' | 'to', string>>>;

/**
 * The path of a place at the other program, which answers with its page or says why there is none. A page of traffic there has the
 * range that is named.
 */
export function placePath(place: Place, range: PlaceRange = {}): string {
  const named = Object.entries(range).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`);
  return `${pathOf(place)}${named.join('')}`;
}

function pathOf(place: Place): string {
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
