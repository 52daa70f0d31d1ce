// Slow: replays captures on a veth pair at their own pace.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { corpusFolder } from '#sensor/testing/corpus.ts';
import { requireProof } from '../require-proof.ts';
import * as live from './corpus-live.prove.ts';

test(
  'NET-1.1: a running sensor judges captures on a veth pair as it judges the files: QUIC is no attack, a flood over a /64 is one',
  {
    skip: process.getuid?.() !== 0 || !existsSync(join(corpusFolder(), 'detection')),
  },
  () =>
    requireProof(live.plantedFaults.length, (report) =>
      live.prove({ n: 2, seed: 1, report, isBeside: false }),
    ),
);
