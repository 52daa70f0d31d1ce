// Own process: it waits for programs, while others use the processor.
/** Operations, the monitor and a sensor as processes, in the demo that an ordinary user starts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { apiOf, signIn } from './testing/people.ts';
import { runDemo } from './testing/run-demo.ts';

test('./svc demo starts the three programs: a server is deployed by a call, its live traffic reaches its owner, and Ctrl-C ends all', async (t) => {
  const demo = await runDemo({ isSimulated: true });
  t.after(() => demo.stop());
  const api = apiOf(demo.file, demo.file.full_key);
  const made = await api.createServer({ plan: 'kvm-1', image: 'debian-13', name: 'of-three-programs' });
  const server = await api.waitForServer(made.id, 'running', { timeoutMs: 120_000, everyMs: 250 });
  await demo.until('the monitor has the server of operations', 120_000, async () => {
    const text = 'select 1 from inventory_vms where vm_id = $1 and name = $2';
    return (await demo.query('monitor', text, [server.id, server.name])).length > 0;
  });
  const customer = await signIn(demo.file.operations_url, demo.file.customer);
  const shown = await demo.until('a live window is shown', 120_000, async () => {
    const { text } = await customer.get(`/client/servers/${server.id}`);
    return text.includes('over 10 s') && text;
  });
  for (const { address } of server.public_ips) assert.ok(shown.includes(address), address);
  assert.equal(await demo.stop(), 0, demo.output());
  assert.deepEqual(demo.leftovers(), []);
});
