import type { Queryable } from '#service-kit/postgres/index.ts';
import { lockAllSites } from './sightings-store.ts';
import { updateManufacturers } from './store.ts';

/** Rows of one transaction; sightings wait meanwhile. */
const batchSize = 1_000;

/** Stores the manufacturers of devices without one; a manufacturer that was stored meanwhile stays. */
export async function writeManufacturers(
  db: Queryable,
  names: readonly { id: number; manufacturer: string }[],
): Promise<void> {
  for (let i = 0; i < names.length; i += batchSize) {
    await db.transaction().execute(async (trx) => {
      await lockAllSites(trx);
      await updateManufacturers(trx, names.slice(i, i + batchSize));
    });
  }
}
