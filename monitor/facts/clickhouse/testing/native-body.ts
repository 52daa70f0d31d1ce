/**
 * Inserts of bytes, which the engine in process takes from files only: statements are text there.
 */
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
