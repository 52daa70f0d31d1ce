/** Names for people of what stands in the rows of an answer. */
import { transportName } from '#contracts/ip-protocols.ts';
import { type Device, labelDevice } from '#monitor/devices/index.ts';
import { countryName, dimensionTable, noPort, type Value } from '#service-kit/explorer/index.ts';
import type { Dimension } from './query.ts';
import { type Inventory, sensorValue } from './resolve.ts';

/** A value as facts have it, in the text form of the dimension, with a name. */
export function labelValue(
  dimension: Dimension,
  value: string | null,
  known: {
    inventory: Inventory;
    devices: ReadonlyMap<string, Device>;
    asNames: ReadonlyMap<string, string>;
  },
): Value {
  const missing = dimensionTable[dimension].none!;
  if (value === null) return { value, label: missing };
  switch (dimension) {
    case 'server':
      return { value, label: known.inventory.serverNames.get(value) ?? value };
    case 'customer':
      return { value, label: `Account ${value}` };
    case 'device': {
      const device = known.devices.get(value);
      return { value, label: device ? labelDevice(device).text : value };
    }
    case 'country':
      return { value, label: countryName(value) ?? value };
    case 'as': {
      const name = known.asNames.get(value);
      return { value, label: name === undefined ? value : `${value} ${name}` };
    }
    case 'port':
      return { value, label: value === noPort ? missing : value };
    case 'transport': {
      const name = transportName(Number(value));
      return { value: name, label: name.toUpperCase() };
    }
    case 'sensor': {
      const text = sensorValue(known.inventory.sensors, Number(value));
      const name = known.inventory.sensors.find((one) => String(one.id) === value)?.hostName;
      return { value: text, label: name ?? text };
    }
    default:
      return { value, label: value };
  }
}
