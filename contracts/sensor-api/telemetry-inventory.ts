/** The host's interfaces and neighbours on the wire. */
import type { Slice, Sliced } from './decode-slices.ts';
import { captureNameMax, type HostInterface, type HostInventory, type HostNeighbour } from './telemetry.ts';
import type {
  HostInterface as HostInterfaceMessage,
  HostInventory as HostInventoryMessage,
  Neighbour as NeighbourMessage,
} from './telemetry_pb.js';
import {
  canonicalAddressText,
  cleanText,
  malformed,
  momentOf,
  plainText,
  smallCountOf,
} from './telemetry-values.ts';

const macShape = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;

/** The message of an inventory; the caller has kept its bounds. */
export function encodeInventory(inventory: HostInventory) {
  return {
    observedAt: BigInt(Math.floor(inventory.observedAtMs)),
    interfaces: inventory.interfaces.map((one) => ({
      ...one,
      name: cleanText(one.name),
      kind: cleanText(one.kind),
      master: cleanText(one.master),
      parent: cleanText(one.parent),
    })),
    neighbours: inventory.neighbours.map((one) => ({ ...one, segment: cleanText(one.segment) })),
    interfacesLeftOut: inventory.interfacesLeftOut,
    neighboursLeftOut: inventory.neighboursLeftOut,
  };
}

/** Interfaces or neighbours between two looks at the slice. */
const entriesAtOnce = 64;

/** The inventory in this message. Throws `telemetry.malformed`. */
export function* decodeInventory(message: HostInventoryMessage, slice: Slice): Sliced<HostInventory> {
  const interfaces: HostInterface[] = [];
  for (const one of message.interfaces) {
    const rows = 1 + one.addresses.length;
    if (slice.isFullFor(rows)) yield slice.end();
    slice.add(rows);
    interfaces.push(decodeInterface(one));
  }
  const neighbours: HostNeighbour[] = [];
  for (const [i, one] of message.neighbours.entries()) {
    if (i % entriesAtOnce === 0) {
      if (slice.isFullFor(entriesAtOnce)) yield slice.end();
      slice.add(Math.min(entriesAtOnce, message.neighbours.length - i));
    }
    neighbours.push(decodeNeighbour(one));
  }
  return {
    observedAtMs: momentOf(message.observedAt, 'inventory.observed_at'),
    interfaces,
    neighbours,
    interfacesLeftOut: smallCountOf(message.interfacesLeftOut, 'inventory.interfaces_left_out'),
    neighboursLeftOut: smallCountOf(message.neighboursLeftOut, 'inventory.neighbours_left_out'),
  };
}

function decodeInterface({ $typeName: _, ...one }: HostInterfaceMessage): HostInterface {
  if (one.vlan > 4095) throw malformed('a vlan of the inventory is over 4095');
  for (const name of ['name', 'kind', 'master', 'parent'] as const)
    plainText(one[name], captureNameMax, `inventory.interfaces.${name}`);
  if (one.mac !== '') checkMac(one.mac);
  one.addresses.forEach(checkPrefix);
  return one;
}

function decodeNeighbour({ $typeName: _, ...one }: NeighbourMessage): HostNeighbour {
  plainText(one.segment, 128, 'inventory.neighbours.segment');
  checkMac(one.mac);
  if (one.address !== '') canonicalAddressText(one.address, 'inventory.neighbours.address');
  return one;
}

function checkMac(text: string): void {
  if (!macShape.test(text)) throw malformed('a MAC of the inventory is not in lower-case pairs');
}

/** An address with its prefix length, host bits kept: `192.0.2.1/24`. */
function checkPrefix(text: string): void {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  if (!match || Number(match[2]) > (text.includes(':') ? 128 : 32)) {
    throw malformed('an address of an interface has no prefix length');
  }
  canonicalAddressText(match[1]!, 'inventory.interfaces.addresses');
}
