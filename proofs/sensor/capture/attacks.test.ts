// Slow: floods the engine with 60,000 flows, and again for each planted fault.
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as poisoning from './dns-poisoning.prove.ts';
import * as flood from './flow-flood.prove.ts';
import * as collisions from './hash-collisions.prove.ts';

test('NET-8.6: names known before a flood stay, totals and local addresses are exact, memory is bounded', () =>
  requireProof(flood.plantedFaults.length, (report) => flood.prove({ n: 60_000, seed: 1, report })));

test('NET-8.6: flows made to collide cost no more than others, because the hash has a key', () =>
  requireProof(1, (report) => collisions.prove({ n: 3000, seed: 1, report })));

test('NET-2.2.3: forged DNS answers name nothing, honest ones do', () =>
  requireProof(poisoning.plantedFaults.length, (report) => poisoning.prove({ n: 3000, seed: 1, report })));
