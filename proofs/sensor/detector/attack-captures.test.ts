// Slow: detects attacks in generated captures.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as captures from './attack-captures.prove.ts';

test('NET-1.1: floods of every class in capture files are one attack each, in time, and not when packets are spoilt', () =>
  requireProof(captures.plantedFaults.length, (report) => captures.prove({ n: 5, seed: 1, report })));
