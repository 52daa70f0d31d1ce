/** The place of a server from the view of one sensor. Times are seconds since 1970, infinite when open. */

export interface Placement {
  /** The scope of the address; blank when unknown. */
  segment: string;
  /** False: the address is valid inside its segment only. Absent: true. */
  isUnique?: boolean;
  beganAt: number;
  endedAt: number;
  /** The server was on this sensor's node, or its node is unknown. */
  speaks: boolean;
}

/** True when the placement overlaps the minute, given by its start in seconds. */
export function covers(placement: Pick<Placement, 'beganAt' | 'endedAt'>, minute: number): boolean {
  return placement.beganAt < minute + 60 && placement.endedAt > minute;
}

/** True when the placement is about an address seen at these segments; a blank segment is unknown. */
export function isAt(placement: Pick<Placement, 'segment' | 'isUnique'>, segments: readonly string[]) {
  if (placement.isUnique !== false || placement.segment === '') return true;
  return segments.includes('') || segments.includes(placement.segment);
}

/**
 * True when a sensor's report about an address or MAC in a minute is foreign: a server of another node had it, and none
 * of its own. Addresses of no server belong to every sensor. While a server moves, both nodes may report.
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

/** A server's interface with one of its addresses; without an address, the interface itself. */
export interface PlacedInterface {
  clusterId: number;
  serverId: number;
  node: string | null;
  mac: string;
  /** As written by sensors; blank when unknown. */
  segment: string;
  address: string | null;
  /** False: the address is valid inside its segment only. */
  isUnique: boolean;
}

/** Identity of a place; the store computes the same. */
export function placeKey(place: Omit<PlacedInterface, 'isUnique'>): string {
  const { clusterId, serverId, node, mac, segment, address } = place;
  return JSON.stringify([clusterId, serverId, node, mac, segment, address]);
}

// An address or MAC in a sensor's report.

export interface Spoken {
  sensorId: number;
  /** Canonical text. */
  subject: string;
}
