/** One location with a simulated cluster, addresses of both families, an image and a plan. */
import { ensurePool } from '#operations/addresses/index.ts';
import { ensureImage, ensureLocation, ensurePlan } from '#operations/catalog/index.ts';
import { ensureCluster, ensureNode } from '#operations/clusters/index.ts';

/** Returns the cluster's id. */
export async function seedCatalog(db: Parameters<typeof ensureLocation>[0]): Promise<number> {
  const locationId = await ensureLocation(db, { slug: 'fra', name: 'Frankfurt', country: 'DE' });
  const clusterId = await ensureCluster(db, { locationId, name: 'fra-1', driver: 'simulated' });
  const capacity = { vcpus: 4_096, memoryMb: 8_388_608, diskGb: 1_000_000 };
  const node = {
    clusterId,
    name: 'simulated-1',
    uri: null,
    storagePool: null,
    bridge: 'br0',
    networkBridges: null,
  };
  await ensureNode(db, { ...node, ...capacity });
  for (const pool of [
    {
      prefix: '203.0.113.0/24',
      gateway: '203.0.113.1',
      firstAddress: '203.0.113.10',
      lastAddress: '203.0.113.250',
    },
    {
      prefix: '2001:db8:113::/64',
      gateway: '2001:db8:113::1',
      firstAddress: '2001:db8:113::10',
      lastAddress: '2001:db8:113::ffff',
    },
  ]) {
    await ensurePool(db, { clusterId, ...pool });
  }
  await ensureImage(db, { slug: 'debian-12', name: 'Debian 12', family: 'debian' });
  await ensurePlan(db, {
    slug: 'small',
    name: 'Small',
    vcpus: 1,
    memoryMb: 2048,
    diskGb: 20,
    hourlyQuanta: 60,
    monthlyCapQuanta: 40_000,
  });
  return clusterId;
}
