/** The host's interfaces and neighbours on the wire. */
import { create } from '@bufbuild/protobuf';
import {
  captureNameMax,
  type HostInterface,
  type HostInventory,
  type HostNeighbour,
  interfaceAddressesMax,
  interfacesMax,
  neighboursMax,
} from './telemetry.ts';
import {
  HostInterfaceSchema,
  type HostInventory as HostInventoryMessage,
  HostInventorySchema,
  NeighbourSchema,
} from './telemetry_pb.js';
import {
  boundedList,
  canonicalAddressText,
  cleanText,
  countOf,
  malformed,
  plainText,
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

/** The inventory in this message. Throws `telemetry.malformed`. */
export function decodeInventory(message: HostInventoryMessage): HostInventory {
  const interfaces = boundedList(message.interfaces, interfacesMax, 'inventory.interfaces').map(
    (one): HostInterface => {
      const vlan = one.vlan;
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
        addresses: boundedList(one.addresses, interfaceAddressesMax, 'inventory.interfaces.addresses').map(
          prefixOf,
        ),
      };
    },
  );
  const neighbours = boundedList(message.neighbours, neighboursMax, 'inventory.neighbours').map(
    (one): HostNeighbour => ({
      segment: plainText(one.segment, 128, 'inventory.neighbours.segment'),
      mac: macOf(one.mac),
      address: one.address === '' ? '' : canonicalAddressText(one.address, 'inventory.neighbours.address'),
      isRouter: one.isRouter,
    }),
  );
  return {
    observedAtMs: countOf(message.observedAt, 'inventory.observed_at'),
    interfaces,
    neighbours,
    interfacesLeftOut: message.interfacesLeftOut,
    neighboursLeftOut: message.neighboursLeftOut,
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
