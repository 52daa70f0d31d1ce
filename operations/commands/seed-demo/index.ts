/**
 * The demo world: an operator, two customers with credit and keys, plans, images, a location with a cluster, and
 * running servers, all made through the same operations that customers use.
 *
 * Seeding is idempotent: what is there is left as it is. `demo.json` is written last, by rename, readable by its owner
 * alone. Secrets can't be read back out of the database, so when the file is missing new ones are made and the old keys
 * and token are revoked.
 */
import { join } from 'node:path';
import type { Part } from '#common/lifecycle/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { seedSignOn } from '#service-kit/sign-on/index.ts';
import { readDemoFile, writeDemoFile } from './demo-file.ts';
import type { DemoWorldDeps } from './deps.ts';
import { seedCatalog } from './seed-catalog.ts';
import { seedCustomers, seedProject } from './seed-customers.ts';
import { ensureRunningServers } from './seed-server.ts';

export function createDemoWorld(deps: DemoWorldDeps): Part {
  const file = join(deps.dir, 'demo.json');
  return {
    name: 'demo world',
    async start() {
      const clusterId = await seedCatalog(deps.features, deps.driver ?? 'simulated');
      const known = await readDemoFile(file);
      const world = known ?? { ...(await seedCustomers(deps.features)), cluster_id: clusterId };
      await seedProject(deps.features);
      const { accounts, signOn, settings } = deps.features;
      if (settings.demoSignOn)
        await seedSignOn(signOn, systemActor, settings.demoSignOn, accounts.people.findByEmail);
      await ensureRunningServers(deps, world.tenant_id, world.customer.email);
      if (known === null) await writeDemoFile(file, world);
      deps.reporter.info('demo world is ready', { file, is_new: known === null });
    },
    async stop() {},
  };
}
