// Slow: ends the demo that other files use, and starts it again.
/**
 * A demo that was killed is started again on its data: everything that was acknowledged exists and works. What a lab makes
 * of a kill is in `lab/lab.test.ts`.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { apiOf } from './testing/people.ts';
import { runDemo } from './testing/run-demo.ts';
import { shareDemo } from './testing/shared-demo.ts';

const shared = shareDemo();

test('a demo killed during a deployment starts again with everything that was acknowledged', async (t) => {
  const first = await shared.start();
  let demo = first;
  t.after(async () => {
    await demo.stop();
    await shared.stop();
  });
  const body = { plan: 'kvm-1', image: 'debian-13', name: 'survivor' };
  const made = await apiOf(first.file, first.file.full_key).createServer(body);
  await first.kill();
  demo = await runDemo({ isSimulated: true, after: first });

  assert.deepEqual(demo.file, first.file, 'the demo file keeps its keys and logins');
  assert.equal(
    JSON.parse(readFileSync(join(demo.dataDir, 'demo.json'), 'utf8')).full_key,
    first.file.full_key,
  );
  const survivor = await demo.until('the server of the deployment runs', 90_000, async () => {
    const { servers } = await apiOf(demo.file, demo.file.full_key).listServers({ name: 'survivor' });
    const found = servers.filter((server) => server.name === 'survivor');
    assert.equal(found.length, 1);
    return found[0]!.status === 'running' && found[0]!;
  });
  assert.equal(survivor.id, made.id);
  assert.deepEqual(survivor.public_ips, made.public_ips);
  assert.equal(await demo.stop(), 0, demo.output());
  assert.deepEqual(demo.leftovers(), []);
});
