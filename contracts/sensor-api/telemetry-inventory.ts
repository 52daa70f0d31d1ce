/** The host's interfaces and neighbours on the wire. */
import { create } from '@bufbuild/protobuf';
import type { Slice, Sliced } from './decode-slices.ts';
import { captureNameMax, type HostInterface, type HostInventory, type HostNeighbour } from './telemetry.ts';
import {
  type HostInterface as HostInterfaceMessage,
  HostInterfaceSchema,
  type HostInventory as HostInventoryMessage,
  HostInventorySchema,
  type Neighbour as NeighbourMessage,
  NeighbourSchema,
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
export function encodeInventory(inventory: HostInventory): HostInventoryMessage {
  return create(HostInventorySchema, {
    observedAt: BigInt(Math.floor(inventory.observedAtMs)),
    interfaces: inventory.interfaces.map((one) =>
      create(HostInterfaceSchema, {
        name: cleanText(one.name),
        index: one.index,
        mac: one.mac,
        kind: cleanText(one.kind),
        isUp: one.isUp,
        mtu: one.mtu,
        master: cleanText(one.master),
        parent: cleanText(one.parent),
        vlan: one.vlan,
        addresses: one.addresses,
      }),
    ),
    neighbours: inventory.neighbours.map((one) =>
      create(NeighbourSchema, {
        segment: cleanText(one.segment),
        mac: one.mac,
        address: one.address,
        isRouter: one.isRouter,
      }),
    ),
    interfacesLeftOut: inventory.interfacesLeftOut,
    neighboursLeftOut: inventory.neighboursLeftOut,
  });
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

function decodeInterface(one: HostInterfaceMessage): HostInterface {
  const { vlan } = one;
  if (vlan > 4095) throw malformed('a vlan of the inventory is over 4095');
  return {
    name: plainText(one.name, captureNameMax, 'inventory.interfaces.name'),
    index: one.index,
    mac: one.mac === '' ? '' : macOf(one.mac),
    kind: plainText(one.kind, captureNameMax, 'inventory.interfaces.kind'),
    isUp: one.isUp,
    mtu: one.mtu,
    master: plainText(one.master, captureNameMax, 'inventory.interfaces.master'),
    parent: plainText(one.parent, captureNameMax, 'inventory.interfaces.parent'),
    vlan,
    addresses: one.addresses.map(prefixOf),
  };
}

function decodeNeighbour(one: NeighbourMessage): HostNeighbour {
  return {
    segment: plainText(one.segment, 128, 'inventory.neighbours.segment'),
    mac: macOf(one.mac),
    address: one.address === '' ? '' : canonicalAddressText(one.address, 'inventory.neighbours.address'),
    isRouter: one.isRouter,
  };
}

function macOf(text: string): string {
  if (!macShape.test(text)) throw malformed('a MAC of the inventory is not in lower-case pairs');
  return text;
}

/** An address with its prefix length, host bits kept: `192.0.2.1/24`. */
function prefixOf(text: string): string {
  const match = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text);
  if (!match || Number(match[2]) > (text.includes(':') ? 128 : 32)) {
    throw malformed('an address of an interface has no prefix length');
  }
  canonicalAddressText(match[1]!, 'inventory.interfaces.addresses');
  return text;
}
