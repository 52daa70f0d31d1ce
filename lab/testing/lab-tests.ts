/** What the lab's own tests share: who may run them, throw-away worlds, and waiting for conditions. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext, TestOptions } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { createLab, type Lab, type LabOptions } from '../index.ts';

/** Options of a test that creates namespaces: skipped with a reason without root; CI refuses skipped tests. */
export const needsRoot: TestOptions = {
  skip: process.getuid?.() === 0 ? false : 'network namespaces take root on Linux',
};

/** A data directory that goes with the test. */
export function makeDataDir(t: TestContext): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-lab-test-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return dataDir;
}

/** A world that is up until the test ends; silent unless rates are given. */
export async function startLab(t: TestContext, options: Partial<LabOptions> = {}): Promise<Lab> {
  const dataDir = options.dataDir ?? makeDataDir(t);
  const quiet = { outboundPerSecond: 0, inboundPerSecond: 0 };
  const lab = createLab({ ...quiet, reporter: silentReporter, ...options, dataDir });
  await lab.start();
  t.after(() => lab.stop());
  return lab;
}

/** Resolves with the first value that is neither null nor false; fails with `what` after ten seconds. */
export async function until<T>(what: string, look: () => Promise<T | null | false> | T | null | false) {
  const deadline = performance.now() + 10_000;
  for (;;) {
    const value = await look();
    if (value !== null && value !== false) return value;
    if (performance.now() > deadline) throw new Error(`it did not happen within ten seconds: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
