/** Traffic in the console's lists and on its overview. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { worldMinuteMs } from '#operations/testing/world-time.ts';

let world: World;
let cookie: string;
before(async () => {
  world = await createWorld();
  const password = 'a password for tests';
  const email = 'operator@staff.test';
  await world.accounts.createPerson(systemActor, { email, name: 'Op', password, staffRole: 'operator' });
  cookie = await world.signIn(email);
});
after(() => world[Symbol.asyncDispose]());

const text = async (path: string) => {
  const answer = await fetch(`${world.url}${path}`, { headers: { cookie, accept: 'text/html' } });
  assert.equal(answer.status, 200, path);
  return (await answer.text()).replace(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
};

test('the lists show in, out and the 95th percentile of servers and customers; the overview those with the most', async () => {
  assert.doesNotMatch(await text('/console/'), /Most traffic/);
  const token = await world.createToken(['protect_telemetry_ingest']);
  for (const [name, bytes] of [
    ['quiet', 7_500],
    ['busy', 750_000],
  ] as const) {
    const { tenant } = await world.createCustomer(`${name} company`);
    const { serverId } = await world.deploy(tenant, name);
    await world.backdate(serverId, '2 days');
    const allocations = await world.addresses.listAllocationsOfServers([serverId]);
    for (const of of allocations)
      await deliverMinutes(
        world,
        token,
        of,
        [4, 3, 2].map(
          (ago) => [worldMinuteMs - ago * 60_000, { in: bytes * (5 - ago), out: bytes }] as const,
        ),
      );
  }
  // Two addresses: 2 × 750,000 bytes a minute are 200 kbit/s, three times as much in the newest.
  const servers = await text('/console/servers/');
  assert.match(servers, /busy #\d+ busy company .{0,80} 600 kbit\/s 200 kbit\/s 200 kbit\/s/);
  assert.match(servers, /quiet #\d+ quiet company .{0,80} 6\.00 kbit\/s 2\.00 kbit\/s 2\.00 kbit\/s/);
  const customers = await text('/console/customers/');
  assert.match(customers, /busy company .{0,80} 9\.00 MB 4\.50 MB 200 kbit\/s/);
  const overview = await text('/console/');
  assert.match(overview, /Most traffic in the last hour/);
  const table = overview.slice(overview.indexOf('Most traffic in the last hour'));
  assert.ok(table.indexOf('busy company') < table.indexOf('quiet company'));
});
