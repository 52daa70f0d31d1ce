/** What the lab's own tests share: who may run them, throw-away worlds, and their patience. */
import { mkdtempSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestOptions } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { createLab, type Lab, type LabOptions } from '../index.ts';
import { nameWorld } from '../world/name-world.ts';

/** Options of a test that creates namespaces: skipped with a reason without root; CI refuses skipped tests. */
export const needsRoot: TestOptions = {
  skip: process.getuid?.() === 0 ? false : 'network namespaces take root on Linux',
};

/** A test, or a part of a proof: what ends with it. */
export interface Scope {
  after(end: () => unknown): void;
}

/** A data directory that goes with the test. Its world has an address of the host that no other world has now. */
export function makeDataDir(t: Scope): string {
  for (;;) {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-lab-test-'));
    t.after(() => rmSync(dataDir, { recursive: true, force: true }));
    const { hostAddress } = nameWorld(dataDir);
    const taken = Object.values(networkInterfaces()).flatMap((link) => link?.map(({ address }) => address));
    if (!taken.includes(hostAddress)) return dataDir;
  }
}

/** A world that is up until the test ends; silent unless rates are given. */
export async function startLab(t: Scope, options: Partial<LabOptions> = {}): Promise<Lab> {
  const dataDir = options.dataDir ?? makeDataDir(t);
  const quiet = { outboundPerSecond: 0, inboundPerSecond: 0 };
  const lab = createLab({ ...quiet, reporter: silentReporter, ...options, dataDir });
  await lab.start();
  t.after(() => lab.stop());
  return lab;
}

/** A program that fetches a page of seven bytes and prints how many came; it fails when none did within this time. */
export const fetchSeven = (origin: string, withinMs: number): string[] => [
  ...['curl', '-q', '--noproxy', '*', '-skg', '-m', String(withinMs / 1000)],
  ...['-o', '/dev/null', '-w', '%{size_download}', `${origin}/bytes/7`],
];

/** How long a test waits for what is to come: a busy machine is no closed door. */
export const patientMs = 60_000;
