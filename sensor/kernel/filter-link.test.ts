// Slow: connections have to converse for two seconds before the flood.
/** The filter at a real interface, with real connections beside a flood. Needs root. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openFilteredLink } from '#sensor/testing/filtered-link.ts';

const packets = 20_000;

test('beside a flood that is dropped no established connection is cut, a filter without a sensor passes all, and nothing is left of it', {
  skip: process.getuid?.() === 0 ? false : 'needs root',
}, async (t) => {
  const link = await openFilteredLink();
  t.after(() => link.close());
  const clients = await link.clients(20, 0);
  await link.rules('ack_flood,syn_flood:count,udp_flood');
  for (const name of ['ack_flood', 'syn_flood', 'udp_flood']) await link.flood(name, packets, 50);
  const { ack_flood: ack, syn_flood: syn, udp_flood: udp } = await link.counts();
  assert.deepEqual([ack!.dropped.packets, udp!.dropped.packets], [packets, packets]);
  assert.deepEqual([syn!.matched.packets, syn!.dropped.packets], [packets, 0]);
  assert.ok(ack!.passed.packets > 100, 'connections go on');
  const { cut, answers } = await clients.end();
  assert.equal(cut, 0);
  assert.ok(answers > 20);
  await link.silence();
  await link.flood('udp_flood', 100, 0);
  const { udp_flood: after } = await link.counts();
  assert.equal(after!.matched.packets, 0, 'fail open');
  assert.deepEqual(await link.remove(), { removed: 1, isAttached: false });
});
