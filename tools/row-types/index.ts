/**
 * Checks the row types that are written by hand beside SQL: every statement of the store files is prepared by PostgreSQL, and
 * the names, types and nullability of its columns are compared with the declared type. Nothing is executed.
 *
 * A call that no stand-in reaches is reported too, because a check that sees nothing must not pass.
 */
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { compareRow } from './compare.ts';
import { type DeclaredRow, readDeclaredRows } from './declared-rows.ts';
import { createDescriber } from './describe.ts';
import { exceptions, given } from './known.ts';
import { runStores } from './run-stores.ts';

export interface RowTypeReport {
  /** Calls whose statements were compared. */
  compared: number;
  /** `file:line: what is wrong`. */
  faults: string[];
}

/** Calls that must have been compared: a check that sees less is broken. */
const comparedMin = { operations: 330, monitor: 260, 'service-kit': 60 };

/** `files`: those of the tree, of which the store files are checked, on a database with the migrations of each program. */
export async function checkStores(root: string, files: readonly string[]): Promise<RowTypeReport> {
  const programs = Object.keys(comparedMin).join('|');
  const isStore = new RegExp(`^(${programs})/(?!.*testing/).*[/-]store\\.ts$`);
  const stores = files.filter((file) => isStore.test(file));
  const declared = readDeclaredRows(root, stores);
  const all: RowTypeReport = { compared: 0, faults: [] };
  for (const [program, min] of Object.entries(comparedMin)) {
    const own = stores.filter((file) => file.startsWith(`${program}/`));
    const known = Object.keys(exceptions[program]!);
    const { compared, faults } = await checkRowTypes(root, program, own, declared, known);
    all.compared += compared;
    all.faults.push(...faults);
    if (compared < min)
      all.faults.push(`${program}: only ${compared} calls were compared; the check is broken`);
  }
  return all;
}

/**
 * `declared`: what `readDeclaredRows` has read of these files, among others: the compiler takes seconds to load the project.
 * `known`: beginnings of faults (`file:function what`) that are none, because the statement's condition says why.
 */
export async function checkRowTypes(
  root: string,
  program: string,
  files: readonly string[],
  declared: readonly DeclaredRow[],
  known: readonly string[] = [],
): Promise<RowTypeReport> {
  await using database = await createTestDatabase(program);
  const rows = declared.filter(({ place }) => files.includes(place.split(':')[0]!));
  const describer = await createDescriber(database.url);
  const statements = await runStores(root, files, describer, given).finally(() => describer.end());
  const faults = new Set<string>();
  const used = new Set<string>();
  let compared = 0;
  for (const row of rows) {
    const own = statements.filter(({ place }) => place === row.place);
    const [file, line] = row.place.split(':');
    if (own.length > 0) compared += 1;
    const found = own.flatMap((statement) => compareRow(row, statement));
    for (const fault of own.length > 0 ? found : ['no statement of this call was seen']) {
      const exception = known.find((text) => `${file}:${row.inside} ${fault}`.startsWith(text));
      if (exception === undefined) faults.add(`${file}:${line} ${row.inside}: ${fault}`);
      else used.add(exception);
    }
  }
  for (const exception of known)
    if (!used.has(exception)) faults.add(`the exception "${exception}" is not needed: delete it`);
  return { compared, faults: [...faults] };
}
