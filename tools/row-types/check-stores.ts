/** The check of the row types of all store files, on databases with the migrations of each program. */
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { checkRowTypes, readDeclaredRows } from './index.ts';
import { exceptions, given } from './known.ts';

/** Calls that must have been compared: a check that sees less is broken. */
const comparedMin = { operations: 330, monitor: 260, 'service-kit': 60 };

export interface StoreReport {
  compared: number;
  faults: string[];
}

/** `files`: those of the tree, of which the store files are checked. */
export async function checkStores(root: string, files: readonly string[]): Promise<StoreReport> {
  const stores = files.filter((file) => /(^|[/-])store\.ts$/.test(file) && !file.includes('/testing/'));
  const programs = Object.entries(comparedMin).map(([program, min]) => ({
    program,
    min,
    own: stores.filter((file) => file.startsWith(`${program}/`)),
  }));
  const declared = readDeclaredRows(
    root,
    programs.flatMap(({ own }) => own),
  );
  const all: StoreReport = { compared: 0, faults: [] };
  for (const { program, min, own } of programs) {
    await using database = await createTestDatabase(program);
    const { compared, faults } = await checkRowTypes({
      ...{ root, files: own, declared, url: database.url, given },
      exceptions: Object.keys(exceptions[program]!),
    });
    all.compared += compared;
    all.faults.push(...faults);
    if (compared < min)
      all.faults.push(`${program}: only ${compared} calls were compared; the check is broken`);
  }
  return all;
}
