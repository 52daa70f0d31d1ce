// Slow: detects attacks in generated captures.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as decisions from './attack-decisions.prove.ts';

test('NET-1.1: attacks of every class, alone and beside ordinary traffic, are one attack each, in time, and not when packets are spoilt', () =>
  requireProof(decisions.plantedFaults.length, (report) => decisions.prove({ n: 4, seed: 1, report })));
