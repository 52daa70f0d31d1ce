import type { TestOptions } from 'node:test';

/** Options of tests on real packets: left out, saying so, for whoever isn't root; CI refuses left-out tests. */
export const needsRoot: TestOptions = {
  skip: process.getuid?.() === 0 ? false : 'network namespaces take root on Linux',
};
