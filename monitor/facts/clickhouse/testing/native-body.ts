/**
 * What the engine in process needs: inserts of bytes from files, since statements are text there, and settings for few rows.
 */
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Expressions are not compiled to machine code, which takes longer than the few rows of a test. */
export const settingsForFewRows = ['expressions', 'aggregate_expressions', 'sort_description']
  .map((what) => `compile_${what} = 0`)
  .join(', ');

/** Whether data of this statement is bytes and not text. */
export const takesBytes = (statement: string): boolean =>
  /^\s*insert\b[\s\S]*\bformat native\s*$/i.test(statement);

/** Runs an insert with its data in a file. */
export async function insertFromFile<T>(
  statement: string,
  body: Uint8Array,
  run: (statement: string) => Promise<T>,
): Promise<T> {
  const path = join(tmpdir(), `svc-insert-${randomUUID()}`);
  writeFileSync(path, body);
  try {
    return await run(statement.replace(/^\s*insert into \w+ \([^)]*\)/i, `$& from infile '${path}'`));
  } finally {
    rmSync(path);
  }
}
