import type { TestOptions } from 'node:test';

/** Options of tests on real packets: skipped with a message without root; CI refuses skipped tests. */
export const needsRoot: TestOptions = {
  skip: process.getuid?.() === 0 ? false : 'network namespaces take root on Linux',
};
