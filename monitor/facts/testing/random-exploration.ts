/** Questions over any dimensions, at random, about what `random-uploads.ts` makes. */
import {
  type AddressOwner,
  addressDimensions,
  type Exploration,
  type ExploredDimension,
  type ExploredFilter,
  type ExploredSource,
  type ExploredView,
  type FilterDimension,
} from '../contract/exploration.ts';
import type { SiteRange } from '../contract/facts.ts';
import { type Random, sampleAddresses, sampleKeys, sampleRemotes } from './random-uploads.ts';

/** Values of each dimension, some of which nothing has. */
const values: Readonly<Record<FilterDimension, readonly string[]>> = {
  address: [...sampleAddresses, '192.0.2.8/30', '2001:db8::/32', '10.0.0.9%br0', '10.0.0.9%br1', '10.1.1.1'],
  device: sampleKeys,
  application: ['example.net', 'example.org', '203.0.113.5', 'GRE', 'SSH', 'none such'],
  peer: [...sampleRemotes, '198.51.100.0/24', '2001:db8::/32', '192.0.2.12'],
  port: ['443', '22', '6/443', '50000', 'none'],
  transport: ['6', '47', '17'],
  direction: ['outbound', 'inbound', 'internal', 'transit'],
  sensor: [],
  scope: ['uplink', 'bridge'],
};

/** Known of connections alone. */
const ofPeers = ['peer', 'country', 'as'] as const;
const keyValues = (one: ExploredDimension): readonly string[] =>
  Object.hasOwn(values, one)
    ? values[one as FilterDimension].concat('x')
    : ['server 1', 'customer', 'DE', 'AS64497'];

export const exploredSources: readonly ExploredSource[] = ['addresses', 'applications', 'pairs'];

const knownOf = (source: ExploredSource): readonly ExploredDimension[] =>
  ([...addressDimensions, 'application', 'port', 'transport', 'direction', ...ofPeers] as const).filter(
    (one) =>
      source === 'pairs' ||
      (source === 'applications' ? !ofPeers.some((peer) => peer === one) : addressDimensions.includes(one)),
  );

export function randomExploration(
  random: Random,
  range: SiteRange,
  sensorIds: readonly number[],
): Exploration {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const source = pick(exploredSources);
  const sensors = sensorIds.map(String);
  const filters = knownOf(source)
    .filter((one): one is FilterDimension => Object.hasOwn(values, one) && random(5) === 0)
    .map((dimension): ExploredFilter => {
      const all = dimension === 'sensor' ? sensors : values[dimension];
      return { dimension, is: random(3) > 0, values: all.filter(() => random(2) === 0).concat(pick(all)) };
    });
  const owners: AddressOwner[] = sampleAddresses.slice(0, 3).map((address, i) => ({
    address,
    segment: '',
    server: `server ${i}`,
    customer: i < 2 ? 'customer' : null,
  }));
  if (random(2) === 0)
    owners.push({ address: '10.0.0.9', segment: pick(['br0', 'br1']), server: 'lan', customer: null });
  const networks = sampleRemotes.slice(0, 3).map((address, i) => ({
    peer: address,
    country: i < 2 ? 'DE' : null,
    as: `AS${64_496 + i}`,
  }));
  const measure = pick(['bytes', 'packets'] as const);
  return { ...range, source, filters, owners, networks, measure, ...randomView(random, source) };
}

/** The same of all but some addresses, which engines may find by taking a part away; of sums that may be asked for so. */
export function randomRemainder(random: Random, range: SiteRange, sensorIds: readonly number[]): Exploration {
  const asked = randomExploration(random, range, sensorIds);
  const source = random(4) === 0 ? 'addresses' : 'applications';
  const values = sampleAddresses.filter(() => random(3) > 0).concat(sampleAddresses[0]!);
  const ofNames = (one: ExploredDimension) =>
    source === 'applications' && !addressDimensions.includes(one) && !ofPeers.some((peer) => peer === one);
  const view = randomView(random, source);
  return {
    ...asked,
    ...view,
    ...{ source, measure: random(4) === 0 ? 'packets' : 'bytes' },
    by: view.by.filter(ofNames),
    rows: { limit: 1 + random(6) },
    filters: [
      { dimension: 'address', is: false, values },
      ...asked.filters.filter((one) => ofNames(one.dimension)),
    ],
  };
}

/** Any view of facts of this source. */
export function randomView(random: Random, source: ExploredSource): ExploredView {
  const pick = <T>(all: readonly T[]): T => all[random(all.length)]!;
  const by = knownOf(source)
    .toSorted(() => random(3) - 1)
    .slice(0, random(3));
  const column = (one: ExploredDimension) => (random(4) === 0 ? null : pick(keyValues(one)));
  const isOfKeys = random(3) === 0 && by.length > 0;
  return {
    by,
    stepSeconds: pick([null, 60, 600, 3600, 7200, 86_400]),
    order: pick(['size', 'size', 'in', 'out']),
    rows: isOfKeys ? { keys: [by.map(column), by.map(column)] } : { limit: 1 + random(6) },
  };
}
