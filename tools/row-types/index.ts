/**
 * Checks the row types that are written by hand beside SQL: every statement of the store files is prepared by PostgreSQL, and
 * the names, types and nullability of its columns are compared with the declared type. Nothing is executed.
 *
 * A call that no stand-in reaches is reported too, because a check that sees nothing must not pass.
 */
import { compareRow } from './compare.ts';
import type { DeclaredRow } from './declared-rows.ts';
import { createDescriber } from './describe.ts';
import { type Arguments, runStores } from './run-stores.ts';

export { readDeclaredRows } from './declared-rows.ts';

export interface RowTypeReport {
  /** Calls whose statements were compared. */
  compared: number;
  /** `file:line: what is wrong`. */
  faults: string[];
}

export interface RowTypeOptions {
  root: string;
  /** Store files, relative to `root`. */
  files: readonly string[];
  /** What `readDeclaredRows` has read of these files, among others: the compiler takes seconds to load the project. */
  declared: readonly DeclaredRow[];
  /** A database with the migrations of the program. */
  url: string;
  /** Arguments of functions that need more than stand-ins. */
  given?: Arguments;
  /** Beginnings of faults (`file:function what`) that are none: the statement's condition says why. */
  exceptions?: readonly string[];
}

export async function checkRowTypes(options: RowTypeOptions): Promise<RowTypeReport> {
  const { root, files, url, given = {}, exceptions = [] } = options;
  const rows = options.declared.filter(({ place }) => files.includes(place.split(':')[0]!));
  const describer = await createDescriber(url);
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
      const exception = exceptions.find((text) => `${file}:${row.inside} ${fault}`.startsWith(text));
      if (exception === undefined) faults.add(`${file}:${line} ${row.inside}: ${fault}`);
      else used.add(exception);
    }
  }
  for (const exception of exceptions)
    if (!used.has(exception)) faults.add(`the exception "${exception}" is not needed: delete it`);
  return { compared, faults: [...faults] };
}
