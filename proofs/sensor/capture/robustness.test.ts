// Slow: reads 10,000 broken packets, and again for each planted fault.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import { plantedFaults, prove } from './robustness.prove.ts';

test('NET-2.2.6: broken packets never throw, hang or accumulate, and each has one verdict; planted faults are detected', () =>
  requireProof(plantedFaults.length, (report) => prove({ n: 10_000, seed: 1, report })));
