// Slow: detects attacks in generated traffic, and plants bugs.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as decisions from './attack-decisions.prove.ts';

test('NET-1.1: attacks are named and decided in time; ordinary traffic and bursts are no attack', () =>
  requireProof(decisions.plantedFaults.length, (report) => decisions.prove({ n: 600, seed: 1, report })));
