import { formatAddress, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { ensurePool } from '#operations/addresses/index.ts';
import { ensureImage, ensureLocation, ensurePlan } from '#operations/catalog/index.ts';
import { ensureCluster, ensureNode } from '#operations/clusters/index.ts';
import type { HypervisorNetwork } from '#operations/hypervisors/index.ts';
import type { Features } from '../../features.ts';

const plans = [
  {
    slug: 'kvm-1',
    name: 'KVM 1',
    vcpus: 1,
    memoryMb: 2_048,
    diskGb: 40,
    portMbit: 500,
    hourlyQuanta: 60,
    monthlyCapQuanta: 40_000,
  },
  {
    slug: 'kvm-2',
    name: 'KVM 2',
    vcpus: 2,
    memoryMb: 4_096,
    diskGb: 80,
    portMbit: 1_000,
    hourlyQuanta: 89,
    monthlyCapQuanta: 60_000,
  },
  {
    slug: 'kvm-4',
    name: 'KVM 4',
    vcpus: 4,
    memoryMb: 8_192,
    diskGb: 160,
    portMbit: 1_000,
    hourlyQuanta: 178,
    monthlyCapQuanta: 120_000,
  },
];

const images = [
  { slug: 'debian-13', name: 'Debian 13', family: 'debian' },
  { slug: 'ubuntu-24.04', name: 'Ubuntu 24.04', family: 'ubuntu' },
  { slug: 'rocky-10', name: 'Rocky Linux 10', family: 'rocky' },
  { slug: 'rescue', name: 'Rescue system', family: 'debian', kind: 'rescue' },
  { slug: 'debian-13-netinst', name: 'Debian 13, network installation', family: 'debian', kind: 'iso' },
] as const;

/** What may be given to guests of the demo world's one node. */
const capacity = { vcpus: 64, memoryMb: 262_144, diskGb: 8_192 };

/** Makes plans, images and the location; returns the location's id. */
export async function seedOffers(features: Features): Promise<number> {
  const { db } = features.database;
  for (const plan of plans) await ensurePlan(db, plan);
  for (const image of images) await ensureImage(db, image);
  return ensureLocation(db, { slug: 'nyc1', name: 'New York 1', country: 'US' });
}

/** Makes the cluster with a node and its address pools, without those of guests elsewhere; returns the cluster's id. */
export async function seedCluster(
  features: Features,
  {
    locationId,
    driver,
    elsewhere,
  }: { locationId: number; driver: 'simulated' | 'lab'; elsewhere: string | null },
): Promise<number> {
  const { db } = features.database;
  const clusterId = await ensureCluster(db, { locationId, name: 'nyc1-a', driver });
  const place = {
    name: 'simulated-1',
    driver,
    uri: null,
    storagePool: null,
    bridge: null,
    networkBridges: null,
  };
  const site = await features.hypervisors.of(place).describeSite();
  await ensureNode(db, { ...place, ...capacity, clusterId, name: site.node, bridge: site.bridge });
  const known = [...site.networks.map(({ prefix }) => prefix), ...(elsewhere === null ? [] : [elsewhere])];
  for (const network of [...site.networks, ...networksOfPrepared(features, driver, known)]) {
    await ensurePool(db, {
      clusterId,
      prefix: network.prefix,
      gateway: network.gateway,
      firstAddress: network.firstGuest,
      lastAddress: network.lastGuest,
    });
  }
  return clusterId;
}

/** Prepared guests may have addresses outside the site's networks; each such address gets a pool of its own range. */
function networksOfPrepared(
  features: Features,
  driver: string,
  known: readonly string[],
): HypervisorNetwork[] {
  const found = new Map<string, HypervisorNetwork>();
  for (const address of features.hypervisors.preparedGuestsOf(driver).flatMap((guest) => guest.addresses)) {
    const bytes = parseAddress(address)!;
    if (known.some((prefix) => prefixContains(parsePrefix(prefix)!, bytes))) continue;
    const length = bytes.length === 4 ? 24 : 64;
    const base = bytes.map((byte, index) => (index < length / 8 ? byte : 0));
    const gateway = base.with(base.length - 1, 1);
    const prefix = `${formatAddress(base)}/${length}`;
    const before = found.get(prefix);
    found.set(prefix, {
      prefix,
      gateway: formatAddress(gateway),
      // Only the prepared addresses themselves are drawn, as sets; the range that strangers may draw is one address.
      firstGuest: before?.firstGuest ?? address,
      lastGuest: before?.lastGuest ?? address,
    });
  }
  return [...found.values()];
}
