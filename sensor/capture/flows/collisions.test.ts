import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assumedKey, batch, type FlowWork } from '#sensor/testing/colliding-flows.ts';
import { countBlocks } from '#sensor/testing/count-blocks.ts';

/** Executed blocks of code of the most expensive 1 % of packets, once the table is full. */
async function p99(work: Pick<FlowWork, 'isAttack' | 'hashKey'>): Promise<number> {
  const module = new URL('../../testing/colliding-flows.ts', import.meta.url);
  const costs = await countBlocks(module, 'observeFlows', { count: 3000, seed: 1, ...work });
  const settled = costs.slice(costs.length / 2).sort((a, b) => a - b);
  return settled[Math.floor(settled.length * 0.99)]! / batch;
}

test('NET-8.6: flows made to collide cost at most three times as much as others, because the hash has a key', async () => {
  const hashKey = [0x5eed_1234, -0x1234_5eed] as const;
  const ordinary = await p99({ isAttack: false, hashKey });
  const attack = await p99({ isAttack: true, hashKey });
  const withoutKey = await p99({ isAttack: true, hashKey: assumedKey });
  assert.ok(attack <= 3 * ordinary, `${attack} and ${ordinary} blocks a packet`);
  assert.ok(withoutKey > 20 * ordinary, `${withoutKey} blocks a packet without a key`);
});
