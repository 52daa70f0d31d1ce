import { inTransaction } from '#service-kit/postgres/index.ts';
import type { EvidenceDeps } from './deps.ts';
import { deleteFile, type Expiry, lockExpired } from './store.ts';

/** One run of retention does not wait longer for a slow store; the next one goes on. */
const patienceMs = 60_000;

/**
 * Removes expired files, of each the object before its row; returns how many. A store that does not answer ends it by an
 * error, and leaves both. The row is locked meanwhile, so that the same file can't be stored again in between.
 */
export async function removeExpired(
  { db, objects, clock }: Pick<EvidenceDeps, 'db' | 'objects' | 'clock'>,
  expiry: Expiry,
): Promise<{ removed: number; isAll: boolean }> {
  const beganAtMs = clock.monotonicMs();
  for (let removed = 0; ; removed += 1) {
    if (clock.monotonicMs() - beganAtMs > patienceMs) return { removed, isAll: false };
    const isRemoved = await inTransaction(db(), async (trx) => {
      const place = await lockExpired(trx, expiry);
      if (!place) return false;
      await objects.remove(place.objectKey);
      await deleteFile(trx, place.id);
      return true;
    });
    if (!isRemoved) return { removed, isAll: true };
  }
}
