import { randomUUID } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import { renewLease, resignLease, takeLease, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { readFeedFiles } from './nvd/import-feeds.ts';
import { leaseName, leaseSeconds } from './refresh.ts';
import * as store from './store.ts';

/** What an import stored. */
export interface ImportResult {
  files: number;
  records: number;
  /** Records of known products. */
  stored: number;
  unreadable: number;
}

/**
 * Adds the records of feed files to the copy, a transaction for each file. `held` while another process refreshes the copy.
 * Throws `vulnerabilities.feed` for a file that can't be read; the files before it stay stored.
 */
export async function importFiles(
  deps: { db: () => Queryable; clock: Clock },
  folder: string,
  report: (line: string) => void,
): Promise<ImportResult | 'held'> {
  const holding = { ...deps, ttlSeconds: leaseSeconds };
  const lease = await takeLease(holding, leaseName, `${process.pid}-${randomUUID()}`);
  if (!lease) return 'held';
  const result: ImportResult = { files: 0, records: 0, stored: 0, unreadable: 0 };
  try {
    for await (const file of readFeedFiles(folder)) {
      await renewLease(holding, lease);
      let stored = 0;
      await underLease(deps.db(), lease, async (trx) => {
        for (const [product, advisories] of file.advisories) {
          await store.mergeAdvisories(trx, product, advisories, file.rejected, file.madeAtMs);
          stored += advisories.length;
        }
      });
      result.files += 1;
      result.records += file.records;
      result.stored += stored;
      result.unreadable += file.unreadable;
      report(
        `${file.name}: ${file.records} records, ${stored} of known products, ${file.unreadable} unreadable.`,
      );
    }
    return result;
  } finally {
    await resignLease(deps, lease);
  }
}
