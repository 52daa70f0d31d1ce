// Slow: detects attacks in generated traffic of every ordinary kind.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as ordinary from './ordinary-traffic.prove.ts';

test('NET-1.1: heavy ordinary traffic of every kind is no attack, and is one without its answers or its peers', () =>
  requireProof(ordinary.plantedFaults.length, (report) =>
    ordinary.prove({ n: 56, seed: 1, report, tenAtOnceEvery: 20 }),
  ));
