/** A machine that runs guests, what may be sold of it, and what is sold. */
import type { HypervisorNode } from '#operations/hypervisors/index.ts';

/** Sizes of a guest, and of what is left for guests. */
export interface Room {
  vcpus: number;
  memoryMb: number;
  diskGb: number;
}

export interface Node extends HypervisorNode {
  id: number;
  clusterId: number;
  clusterName: string;
  /** What may be given to guests; vCPUs may be more than the machine has. */
  capacity: Room;
  used: Room;
  guestCount: number;
  /** False: what runs goes on, nothing new is placed here. */
  isOpen: boolean;
  /** The last time that its hypervisor answered. */
  seenAt: Date | null;
  /** What it said instead, the last time that it did not. */
  lastError: string | null;
}

/** A node that was not seen for this long is away. */
const awayMs = 60_000;

/** True for a node whose hypervisor does not answer. One that was never asked is not away. */
export function isAway(node: Pick<Node, 'lastError' | 'seenAt'>, nowMs: number): boolean {
  return node.lastError !== null || (node.seenAt !== null && nowMs - node.seenAt.getTime() > awayMs);
}

/** What is still free; never below nothing, also where capacity was lowered under what is used. */
export function freeRoom(node: Pick<Node, 'capacity' | 'used'>): Room {
  const left = (name: keyof Room) => Math.max(0, node.capacity[name] - node.used[name]);
  return { vcpus: left('vcpus'), memoryMb: left('memoryMb'), diskGb: left('diskGb') };
}

function fits(room: Room, free: Room): boolean {
  return room.vcpus <= free.vcpus && room.memoryMb <= free.memoryMb && room.diskGb <= free.diskGb;
}

/**
 * The node that a new guest goes to: of those that are open and have room, the one with the largest free share of
 * memory, so that load spreads; between equals the older one.
 */
export function chooseNode<N extends Pick<Node, 'id' | 'capacity' | 'used' | 'isOpen'>>(
  nodes: readonly N[],
  room: Room,
): N | null {
  const share = (node: N) => freeRoom(node).memoryMb / node.capacity.memoryMb;
  const able = nodes.filter((node) => node.isOpen && fits(room, freeRoom(node)));
  return able.sort((a, b) => share(b) - share(a) || a.id - b.id)[0] ?? null;
}
