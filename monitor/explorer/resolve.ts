/** From what people name (servers, accounts, sensors, devices) to what facts know (addresses, ids, keys), and back. */
import { protocolNumber } from '#contracts/ip-protocols.ts';
import {
  type AddressOwner,
  addressDimensions,
  type ExploredFilter,
  type ExploredSource,
  type FilterDimension,
  splitPlaces,
} from '#monitor/facts/index.ts';
import {
  findApplicationNames,
  findDeviceKeys,
  listOwnedAddresses,
  listSensorNames,
  type OwnedAddress,
} from '#monitor/views/explorer-store.ts';
import type { Filter } from '#service-kit/explorer/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Dimension, Limit, Query } from './query.ts';

/** What the site's inventory says, read once for a query. */
export interface Inventory {
  owners: readonly AddressOwner[];
  addresses: readonly OwnedAddress[];
  /** Of `serverValue`. */
  serverNames: ReadonlyMap<string, string>;
  sensors: readonly { id: number; hostName: string; node: string }[];
}

export const uses = ({ by, filters }: Pick<Query, 'by' | 'filters'>, ...dimensions: Dimension[]): boolean =>
  [...by, ...filters.map((one) => one.dimension)].some((one) => dimensions.includes(one as Dimension));

/** Which facts know all that is asked for. */
export function sourceOf({ by, filters }: Pick<Query, 'by' | 'filters'>): ExploredSource {
  const all = [...by, ...filters.map((one) => one.dimension)].filter((one) => one !== 'side');
  if (all.some((one) => one === 'peer' || one === 'country' || one === 'as')) return 'pairs';
  return all.every((one) => addressDimensions.some((known) => known === one)) ? 'addresses' : 'applications';
}

export async function readInventory(
  db: Queryable,
  query: Pick<Query, 'siteId' | 'by' | 'filters'>,
): Promise<Inventory> {
  const [addresses, sensors] = await Promise.all([
    uses(query, 'server', 'customer') ? listOwnedAddresses(db, query.siteId) : [],
    uses(query, 'sensor') ? listSensorNames(db, query.siteId) : [],
  ]);
  const serverOf = serverValues(addresses);
  return {
    addresses,
    sensors,
    serverNames: new Map(addresses.map((one) => [serverOf(one), one.serverName])),
    owners: addresses.map((one) => ({
      address: one.address,
      segment: one.segment,
      server: serverOf(one),
      customer: one.accountId === null ? null : String(one.accountId),
    })),
  };
}

const idOf = (one: Pick<OwnedAddress, 'clusterId' | 'serverId'>) => `${one.clusterId}/${one.serverId}`;

/** The text of a server: its name where no other server of the site has it, else `cluster/id`. */
export function serverValues(addresses: readonly OwnedAddress[]): (one: OwnedAddress) => string {
  const ids = Map.groupBy(addresses, (one) => one.serverName.toLowerCase());
  const isShared = (one: OwnedAddress) => new Set(ids.get(one.serverName.toLowerCase())!.map(idOf)).size > 1;
  return (one) => (isShared(one) ? idOf(one) : one.serverName);
}

/** The text of a sensor: its host's name where no other sensor of the site had it, else `#id`. */
export function sensorValue(sensors: Inventory['sensors'], id: number): string {
  const name = sensors.find((one) => one.id === id)?.hostName;
  const isShared = sensors.filter((one) => one.hostName === name).length > 1;
  return name === undefined || isShared ? `#${id}` : name;
}

/** A filter that the peers of the range resolve (`peer-networks.ts`). */
export const isOfNetwork = (filter: Filter): filter is Filter & { dimension: 'country' | 'as' } =>
  filter.dimension === 'country' || filter.dimension === 'as';

export interface ResolvedFilters {
  filters: ExploredFilter[];
  limits: Limit[];
}

/** Filters as the facts take them, but for those by country and AS. A value that nothing has matches nothing, and is said. */
export async function resolveFilters(
  db: Queryable,
  query: Pick<Query, 'siteId' | 'filters'>,
  inventory: Inventory,
): Promise<ResolvedFilters> {
  const limits: Limit[] = [];
  const filters: ExploredFilter[] = [];
  for (const filter of query.filters) {
    if (isOfNetwork(filter) || filter.dimension === 'side') continue;
    const local = filter as LocalFilter;
    const { dimension, values, unknown } = await resolveFilter(db, query.siteId, local, inventory);
    filters.push({ dimension, is: filter.is, values });
    for (const value of unknown) limits.push(noSuchValue(local.dimension, value));
  }
  return { filters, limits };
}

/** Addresses that filters name one by one, themselves or by their servers and customers; null: other filters or none do. */
export async function listAddresses(
  db: Queryable,
  query: Pick<Query, 'siteId' | 'by' | 'filters'>,
): Promise<string[] | null> {
  const inventory = await readInventory(db, query);
  const { filters } = await resolveFilters(db, query, inventory);
  const named = filters
    .filter(({ dimension, is }) => dimension === 'address' && is)
    .map(({ values }) => splitPlaces(values))
    .filter(({ networks }) => networks.length === 0)
    .map(({ addresses, segments }) => new Set([...addresses, ...segments.map((one) => one.address)]));
  const [first, ...others] = named;
  return first ? [...first].filter((address) => others.every((one) => one.has(address))) : null;
}

const isOfPeers = (dimension: Dimension) => dimension === 'country' || dimension === 'as';

export const noSuchValue = (dimension: Dimension, value: string): Limit => ({
  code: 'no_such_value',
  dimension,
  message: `This site has no ${isOfPeers(dimension) ? 'peer in' : dimension} ${value}. Check the spelling, or choose one of the suggestions.`,
});

type LocalFilter = Omit<Filter, 'dimension'> & { dimension: Exclude<Dimension, 'country' | 'as'> };

interface ResolvedFilter {
  dimension: FilterDimension;
  values: string[];
  unknown: string[];
}

async function resolveFilter(
  db: Queryable,
  siteId: number,
  { dimension, values }: LocalFilter,
  inventory: Inventory,
): Promise<ResolvedFilter> {
  switch (dimension) {
    case 'server':
      return ofAddresses(values, inventory.addresses, (one, value) =>
        [one.serverName.toLowerCase(), idOf(one), String(one.serverId)].includes(value.toLowerCase()),
      );
    case 'customer':
      return ofAddresses(values, inventory.addresses, (one, value) => String(one.accountId) === value);
    case 'sensor':
      return ofKnown(dimension, values, (value) =>
        inventory.sensors
          .filter(
            (one) =>
              [one.hostName, one.node].some((name) => name.toLowerCase() === value.toLowerCase()) ||
              `#${one.id}` === value,
          )
          .map((one) => String(one.id)),
      );
    case 'device': {
      const found = await findDeviceKeys(db, siteId, values);
      return ofKnown(dimension, values, (value) =>
        found.filter((one) => one.text === value).map((one) => one.deviceKey),
      );
    }
    case 'application': {
      const found = await findApplicationNames(db, siteId, values);
      // The list of names is renewed from time to time: a name that is not in it may be new.
      const names = values.flatMap((value) => [
        value,
        ...found.filter((one) => one.text === value).map((one) => one.name),
      ]);
      return { dimension, values: [...new Set(names)], unknown: [] };
    }
    case 'transport':
      return { dimension, values: values.map((one) => String(protocolNumber(one))), unknown: [] };
    case 'port':
      return { dimension, values: values.map(portOfFacts), unknown: [] };
    default:
      return { dimension, values: [...values], unknown: [] };
  }
}

/** `udp/53` with the number of its transport. */
function portOfFacts(value: string): string {
  const [port, transport] = value.split('/').reverse();
  return transport === undefined ? value : `${protocolNumber(transport)}/${port}`;
}

function ofKnown(
  dimension: FilterDimension,
  values: readonly string[],
  find: (value: string) => string[],
): ResolvedFilter {
  const found = values.map((value) => ({ value, known: find(value) }));
  return {
    dimension,
    values: [...new Set(found.flatMap((one) => one.known))],
    unknown: found.filter((one) => one.known.length === 0).map((one) => one.value),
  };
}

const ofAddresses = (
  values: readonly string[],
  addresses: readonly OwnedAddress[],
  matches: (one: OwnedAddress, value: string) => boolean,
): ResolvedFilter =>
  ofKnown('address', values, (value) =>
    addresses
      .filter((one) => matches(one, value))
      .map((one) => (one.segment === '' ? one.address : `${one.address}%${one.segment}`)),
  );
