// Slow: plays over 100 floods, each from its own moment of a second.
import { test } from 'node:test';
import { requireTimely } from '#sensor/testing/live-attacks.ts';

const starts = [0.02, 0.16, 0.93];

for (const members of [1, 3])
  test(`NET-1.1: live with ${members} threads, an attack that begins at any moment is decided within 3 s at 2 times a threshold and 6 s at 1.1 times`, async (t) => {
    for (const ratio of [1.1, 2] as const) await requireTimely(t, members, ratio, starts);
  });
