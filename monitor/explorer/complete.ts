/** Values of a dimension for the box of filters: what the site has and what was typed so far. */
import {
  completeApplications,
  completeDevices,
  listOwnedAddresses,
  listSensorNames,
} from '#monitor/views/explorer-store.ts';
import { countryName, dimensionTable, type Value } from '#service-kit/explorer/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Dimension } from './query.ts';
import { sensorValue, serverValues } from './resolve.ts';

const same = (values: readonly string[]): Value[] => values.map((value) => ({ value, label: value }));

/** All that hold the text, in the order in which people look for them. */
export async function completeValues(
  db: Queryable,
  siteId: number,
  dimension: Dimension,
  typed: string,
  limit: number,
): Promise<Value[]> {
  const text = typed.trim().toLowerCase();
  if (dimension === 'application') return same(await completeApplications(db, siteId, text, limit));
  if (dimension === 'device')
    return (await completeDevices(db, siteId, text, limit)).map(({ deviceKey, name }) => ({
      value: deviceKey,
      label: name ?? deviceKey,
    }));
  const found = await listValues(db, siteId, dimension);
  const unique = [...new Map(found.map((one) => [one.value, one])).values()];
  const holds = (one: Value) => `${one.value ?? ''} ${one.label}`.toLowerCase().includes(text);
  return unique
    .filter(holds)
    .sort((a, b) => a.label.localeCompare(b.label, 'en', { numeric: true }))
    .slice(0, limit);
}

const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ'];

function listCountries(): Value[] {
  return letters
    .flatMap((first) => letters.map((second) => first + second))
    .flatMap((value) => {
      const label = countryName(value);
      return label === null ? [] : [{ value, label }];
    });
}

async function listValues(db: Queryable, siteId: number, dimension: Dimension): Promise<Value[]> {
  switch (dimension) {
    case 'server': {
      const owned = await listOwnedAddresses(db, siteId);
      const serverOf = serverValues(owned);
      return owned.map((one) => ({ value: serverOf(one), label: one.serverName }));
    }
    case 'customer':
      return (await listOwnedAddresses(db, siteId)).flatMap(({ accountId }) =>
        accountId === null ? [] : [{ value: String(accountId), label: `Account ${accountId}` }],
      );
    case 'address':
      return (await listOwnedAddresses(db, siteId)).map((one) => {
        const value = one.segment === '' ? one.address : `${one.address}%${one.segment}`;
        return { value, label: value };
      });
    case 'sensor': {
      const sensors = await listSensorNames(db, siteId);
      return sensors.map((one) => ({ value: sensorValue(sensors, one.id), label: one.hostName }));
    }
    case 'country':
      return listCountries();
    case 'port':
      return same(['22', '25', '53', '80', '123', '443', '3306', '5432']);
    case 'transport':
      return same(['tcp', 'udp', 'icmp', 'icmpv6', 'sctp', 'gre', 'esp']);
    default:
      return same(dimensionTable[dimension].values ?? []);
  }
}
