import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runUploads } from './foreign-uploads.prove.ts';

const uploads = Number(process.env.SVC_TEST_FOREIGN_UPLOADS ?? 40);

test(`NET-2.4.2: ${uploads} random uploads of one host about servers of other nodes deliver no byte of theirs`, async () => {
  const { delivered, offences } = await runUploads({ n: uploads, seed: 5 }, null);
  assert.deepEqual(offences, []);
  assert.ok(delivered > 0, 'their own sensors are delivered');
});

test('the same proof notices a sensor whose host names its own node', async () => {
  const { offences } = await runUploads({ n: 40, seed: 5 }, 'node_named_by_host');
  assert.ok(
    offences.some((offence) => / in instead of | bit\/s out$/.test(offence)),
    offences.join('\n'),
  );
});
