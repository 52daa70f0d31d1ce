// Slow: counts the steps of broken packets in an inspected process.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { observeBroken } from '#sensor/testing/broken-packets.ts';
import { testMinute } from '#sensor/testing/captures.ts';
import { countBlocks } from '#sensor/testing/count-blocks.ts';

test('NET-2.2.6: no broken packet throws, and each has one verdict', () => {
  const count = 8_000;
  const packets = observeBroken({ count, seed: 1 });
  let next = packets.next();
  for (; !next.done; next = packets.next()) next.value();
  const sums = { packets: 0, verdicts: 0 };
  for (const capture of next.value)
    for (const { totals, hosts } of capture.closeAll((testMinute + 120) * 1000)) {
      sums.packets += totals.packets;
      sums.verdicts += totals.ipPackets + totals.nonIpPackets + totals.parserDropped;
      assert.ok(totals.detailTruncated <= totals.ipPackets);
      for (const { rxBytes, txBytes, packets: seen } of hosts)
        assert.ok(Number.isSafeInteger(rxBytes + txBytes) && seen >= 0);
    }
  assert.deepEqual(sums, { packets: count, verdicts: count });
});

test('NET-2.2.6: no broken packet runs more than 200,000 blocks of code', async () => {
  const module = new URL('../testing/broken-packets.ts', import.meta.url);
  const costs = await countBlocks(module, 'observeBroken', { count: 1000, seed: 2 });
  assert.ok(Math.max(...costs) < 200_000, `${Math.max(...costs)} blocks`);
});
