/**
 * Divides the coverage of a process that runs several test files by file: what the process, and programs that it started and
 * that ended meanwhile, executed while the tests of a file ran goes to a folder of that file's name. `tools/test-batch.ts` runs
 * it before the test files.
 */
import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach } from 'node:test';
import { takeCoverage } from 'node:v8';

const folder = process.env.NODE_V8_COVERAGE!;
let running: string | null = null;

/** What was executed since the last call is that of the file that ran, or of no file: modules were loaded. */
function endFile(): void {
  takeCoverage();
  const own = join(folder, encodeURIComponent(running ?? 'loading'));
  mkdirSync(own, { recursive: true });
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isFile()) renameSync(join(folder, entry.name), join(own, entry.name));
}

beforeEach((context) => {
  if (!('filePath' in context) || context.filePath === running) return;
  endFile();
  running = context.filePath as string;
});
process.on('exit', endFile);
