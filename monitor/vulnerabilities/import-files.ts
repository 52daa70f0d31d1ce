import type { Queryable } from '#service-kit/postgres/index.ts';
import { readFeedFiles } from './nvd/import-feeds.ts';
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
 * Adds the records of feed files to the copy, a transaction for each file. It needs no lease: a newer record stays, also where
 * a refresh runs at the same time. Throws `vulnerabilities.feed` for a file that can't be read; the files before it stay stored.
 */
export async function importFiles(
  db: Queryable,
  folder: string,
  report: (line: string) => void,
): Promise<ImportResult> {
  const result: ImportResult = { files: 0, records: 0, stored: 0, unreadable: 0 };
  for await (const file of readFeedFiles(folder)) {
    let stored = 0;
    await db.transaction().execute(async (trx) => {
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
}
