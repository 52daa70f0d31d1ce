// Slow: fills the table of flows, and again for each planted fault.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as pressure from './flow-pressure.prove.ts';

test('NET-8.6: TLS names and bytes are in rows beside 5,000 and 20,000 exchanges over UDP a second', () =>
  requireProof(pressure.plantedFaults.length, (report) =>
    pressure.prove({ n: 2, seed: 1, exchangesMax: 45_000, report }),
  ));
