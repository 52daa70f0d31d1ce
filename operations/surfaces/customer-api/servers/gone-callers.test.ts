/** Calls that wait for a change hold nothing after their callers have gone. */
import assert from 'node:assert/strict';
import { Agent, get } from 'node:http';
import { after, before, test } from 'node:test';
import { createWorld, type World } from '#operations/testing/create-world.ts';
import { leaveWhileFrozen, until, watchRequests } from '#service-kit/testing/gone-callers.ts';

let world: World;
let key: string;
let path: string;
before(async () => {
  world = await createWorld();
  const customer = await world.createCustomer('Gone');
  key = await world.createKey(customer);
  const { serverId } = await world.deploy(customer.tenant, 'web-1');
  path = `/api/v2/servers/${serverId}`;
});
after(() => world[Symbol.asyncDispose]());

const listening = async () => {
  const { rows } = await world.database.pool.query(
    "select from pg_stat_activity where datname = current_database() and query like 'listen %'",
  );
  return rows.length;
};

for (const isPipelined of [false, true])
  test(`a wait does not begin for a caller that has gone while the database stood still${isPipelined ? ', with others of its connection' : ''}`, {
    timeout: 25_000,
  }, async () => {
    const { url, database } = world;
    const request = `GET ${path}?wait_for=status:deleting HTTP/1.1\r\nauthorization: Bearer ${key}`;
    await leaveWhileFrozen({
      url,
      pool: database.pool,
      frozen: ['servers'],
      requests: Array(6).fill(request),
      isPipelined,
    });
    // A wait of its own would listen for 30 seconds.
    await until(async () => (await listening()) === 0);
  });

test('calls that wait leave no listener on the connection that they share', async () => {
  using watched = watchRequests();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const counts: number[] = [];
  for (let call = 0; call < 4; call += 1) {
    await new Promise<void>((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}` };
      get(`${world.url}${path}?wait_for=status:running`, { agent, headers }, (answer) => {
        assert.equal(answer.statusCode, 200);
        answer.resume().on('end', resolve);
      }).on('error', reject);
    });
    counts.push(watched.seen.at(-1)!.socket.listenerCount('close'));
  }
  agent.destroy();
  assert.equal(new Set(watched.seen.map(({ socket }) => socket)).size, 1);
  assert.deepEqual(counts, Array(4).fill(counts[0]));
});
