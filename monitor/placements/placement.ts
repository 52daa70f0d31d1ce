/** Where a server was, as far as it matters to one sensor. Times are seconds since 1970, infinite where open. */
export interface Placement {
  /** Where it means anything: blank where that is not known. */
  segment: string;
  /** False: the address means something inside its segment only. Absent: true. */
  isUnique?: boolean;
  beganAt: number;
  endedAt: number;
  /** The server was on this sensor's node, or its node is unknown. */
  speaks: boolean;
}

/** Whether the placement reaches into a minute; the second at which it starts. */
export function covers(placement: Pick<Placement, 'beganAt' | 'endedAt'>, minute: number): boolean {
  return placement.beganAt < minute + 60 && placement.endedAt > minute;
}

/** Whether a placement is about an address as it was seen at these segments; a blank one is unknown. */
export function isAt(
  placement: Pick<Placement, 'segment' | 'isUnique'>,
  segments: readonly string[],
): boolean {
  if (placement.isUnique !== false || placement.segment === '') return true;
  return segments.includes('') || segments.includes(placement.segment);
}

/**
 * Whether what a sensor says of an address or MAC in a minute is foreign: a server of another node had it, and none of
 * its own. What no server has belongs to every sensor. While a server moves, both nodes speak.
 */
export function isForeign(placements: readonly Placement[], minute: number): boolean {
  let isPlaced = false;
  for (const placement of placements) {
    if (!covers(placement, minute)) continue;
    if (placement.speaks) return false;
    isPlaced = true;
  }
  return isPlaced;
}

/** A server's interface with one of its addresses; with none, the interface itself. */
export interface Place {
  clusterId: number;
  vmId: number;
  node: string | null;
  mac: string;
  /** As sensors write it; blank where it is not known. */
  segment: string;
  address: string | null;
  /** False: the address means something inside its segment only. */
  isUnique: boolean;
}

/** What tells one place from another, as the store builds it too. */
export function placeKey(place: Omit<Place, 'isUnique'>): string {
  const { clusterId, vmId, node, mac, segment, address } = place;
  return JSON.stringify([clusterId, vmId, node, mac, segment, address]);
}
