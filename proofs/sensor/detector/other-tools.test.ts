import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { requireProof } from '../require-proof.ts';
import * as tools from './other-tools.prove.ts';
import { generatedFlood, toolFloods } from './tool-floods.ts';

test('NET-1.1: what judges floods of other tools finds ours right, and no class when packets are spoilt', () =>
  requireProof(tools.plantedFaults.length, (report) => {
    const floods = toolFloods.filter(({ tool }) => tool === 'tcpreplay');
    const recordFlood: NonNullable<tools.ProveOptions['recordFlood']> = async (flood, pick, _, file) =>
      writeFileSync(file, generatedFlood(flood, pick(1, 1_000_000), 1000, 4));
    return tools.prove({ n: floods.length, seed: 1, report, floods, recordFlood });
  }));
