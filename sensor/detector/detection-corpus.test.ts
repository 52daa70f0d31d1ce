import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { detectFile } from '#sensor/capture-reader/index.ts';
import { corpusFolder } from '#sensor/testing/corpus.ts';
import { printInProcess } from '#sensor/testing/read-in-process.ts';

const folder = join(corpusFolder(), 'detection');
const everything = '203.0.113.0/24';

interface Answer {
  detector: { complete: boolean };
  incidents: { class: string; severity: string; direction: string }[];
}

/** What `sensor detect` says of a capture by thresholds of a hundredth, and its warnings. */
async function answerOf(name: string, protect: string | null) {
  const { status, stdout, stderr } = await printInProcess((screen) =>
    detectFile(
      join(folder, `${name}.pcap.gz`),
      { json: true, thresholds: join(folder, 't100.json'), ...(protect && { protect: [protect] }) },
      screen,
    ),
  );
  assert.equal(status, 0);
  return { found: JSON.parse(stdout) as Answer, stderr };
}

const isAttack = ({ severity }: { severity: string }) => severity === 'attack';

for (const name of [
  'vxlan8472-2nodes',
  'gre-fragmented-tunnel',
  'quic-8',
  'wg-hub-30clients',
  'gameserver-600players',
  'esp-6peers',
])
  test(`NET-1.1: ${name}: ordinary traffic over every threshold is no attack`, {
    skip: !existsSync(folder),
  }, async () => {
    const { found } = await answerOf(name, everything);
    assert.deepEqual(found.incidents.filter(isAttack), []);
  });
