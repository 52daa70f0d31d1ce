import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addUp, besideBefore } from './usage-sums.ts';

const sum = (allocationId: number, serverId: number, packets: number | null) => ({
  ...{ allocationId, serverId, address: `192.0.2.${allocationId}`, packets },
  ...{ inboundBytes: allocationId, outboundBytes: 10 * allocationId, arePacketsPartial: packets === null },
});

test('adding up leaves its rows as they are, so that the same rows can be added up by something else', () => {
  const rows = besideBefore([sum(1, 7, 5), sum(2, 7, null), sum(3, 7, 6), sum(4, 8, null)], [sum(2, 7, 9)]);
  const before = structuredClone(rows);
  const byServer = addUp(rows, ({ serverId }) => serverId);
  assert.deepEqual(
    byServer.map((row) => [
      row.serverId,
      row.inboundBytes,
      row.packets,
      row.previousInbound,
      row.arePacketsPartial,
    ]),
    [
      [7, 6, 11, 2, true],
      [8, 4, null, 0, true],
    ],
  );
  const [all] = addUp(byServer, () => 'all');
  assert.deepEqual([all!.inboundBytes, all!.outboundBytes, all!.previousOutbound], [10, 100, 20]);
  assert.deepEqual(rows, before);
  assert.deepEqual(
    byServer,
    addUp(rows, ({ serverId }) => serverId),
  );
});
