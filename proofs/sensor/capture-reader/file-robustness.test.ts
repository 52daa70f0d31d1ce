// Slow: reads 500 broken files, and again for each planted fault.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import { plantedFaults, prove } from './file-robustness.prove.ts';

test('NET-2.2.6: broken capture files of every format are read or refused, each packet counts once; planted faults are detected', () =>
  requireProof(plantedFaults.length, (report) => prove({ n: 500, seed: 1, report })));
