/** Changes of servers that operations tells of: read once each, wherever a run ends, and only where there is a list of them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, test } from 'node:test';
import type { InventoryChange } from '#contracts/admin-api/inventory-changes.ts';
import { allCapabilities } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';

let world: World;
/** What each page was asked after, `from the beginning` for the first. */
let asked: string[] = [];

before(async () => {
  world = await createWorld();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  const { operations } = world;
  operations.changes = [];
  operations.capabilities = { ...allCapabilities };
  await world.database.pool.query('truncate vm_changes');
  await world.database.pool.query(
    'update inventory_state set changes_after = null, changes_revision = null, last_error = null',
  );
  await world.connection.check();
  asked = [];
  operations.intercept = (request, _response, path) => {
    if (path === '/inventory/changes/')
      asked.push(new URL(request.url!, operations.url).searchParams.get('after') ?? 'from the beginning');
    return false;
  };
});

const change = (kind: string, serverId = 1, clusterId = 7): InventoryChange => ({
  ...{ id: randomUUID(), cluster_id: clusterId, virtual_machine_id: serverId, kind },
  at: new Date(Date.now() - 600_000).toISOString(),
});

const run = () => world.inventory.loop.runOnce();
const lastError = async () => (await world.inventory.state()).lastError;

async function storedKinds(): Promise<string[]> {
  const { rows } = await world.database.pool.query<{ kind: string }>(
    'select kind from vm_changes order by 1',
  );
  return rows.map(({ kind }) => kind);
}

test('changes are read behind the inventory in pages, each once, and the next run goes on at the cursor', async () => {
  const { operations } = world;
  operations.changes = [change('firewall'), change('network_attached'), change('network_detached', 2)];
  await run();
  await run();
  assert.deepEqual(await storedKinds(), ['firewall', 'network_attached', 'network_detached']);
  operations.changes.push(change('reset'));
  await run();
  assert.deepEqual(await storedKinds(), ['firewall', 'network_attached', 'network_detached', 'reset']);
  assert.deepEqual(asked, ['from the beginning', '2', '3', '3']);
  assert.equal(await lastError(), null);
});

test('a page that is read twice counts once', async () => {
  world.operations.changes = [change('firewall'), change('reset')];
  await run();
  await world.database.pool.query('update inventory_state set changes_after = null');
  await run();
  assert.deepEqual(await storedKinds(), ['firewall', 'reset']);
  assert.deepEqual(asked, ['from the beginning', 'from the beginning']);
});

test('a run that fails between two pages keeps what it has, says so, and loses nothing', async () => {
  const { operations } = world;
  operations.changes = [change('firewall'), change('rebooted'), change('reset')];
  operations.intercept = (request, response, path) => {
    if (path !== '/inventory/changes/' || !request.url!.includes('after=2')) return false;
    response.writeHead(500).end('their secret');
    return true;
  };
  await run();
  assert.deepEqual(await storedKinds(), ['firewall', 'rebooted']);
  assert.match((await lastError())!, /^Operations reported an internal error/);
  operations.intercept = () => false;
  await run();
  assert.deepEqual(await storedKinds(), ['firewall', 'rebooted', 'reset']);
  assert.equal(await lastError(), null);
});

for (const [killed, event] of [
  ['changes', 'insert on vm_changes'],
  ['cursor', 'update of changes_after on inventory_state'],
])
  test(`a run that is killed while it stores the ${killed} of a page stores neither changes nor cursor`, async () => {
    const { operations, database } = world;
    operations.changes = [change('firewall'), change('reset')];
    // The process ends before the commit: PostgreSQL undoes what the transaction did.
    await database.pool.query(
      `create function kill_run() returns trigger language plpgsql as $$
         begin perform pg_terminate_backend(pg_backend_pid()); return null; end $$;
       create trigger kill_run after ${event} for each row execute function kill_run()`,
    );
    await run().catch(() => {});
    await database.pool.query('drop function kill_run() cascade');
    assert.deepEqual(await storedKinds(), []);
    await run();
    assert.deepEqual(await storedKinds(), ['firewall', 'reset']);
    assert.deepEqual(asked, ['from the beginning', 'from the beginning']);
  });

test('an operations without such a list is not asked for it, and the import is as good', async () => {
  const { vm_inventory_changes: _, vm_inventory_changes_version: __, ...older } = allCapabilities;
  world.operations.capabilities = older;
  await world.connection.check();
  world.operations.changes = [change('firewall')];
  await run();
  assert.deepEqual([asked, await storedKinds(), await lastError()], [[], [], null]);
  world.operations.capabilities = { ...older, vm_inventory_changes: true, vm_inventory_changes_version: 2 };
  await world.connection.check();
  await run();
  assert.deepEqual([asked, await storedKinds(), await lastError()], [[], [], null], 'another version');
});

test('an operations that was upgraded is noticed without a person and without a feed', async () => {
  const { vm_inventory_changes: _, vm_inventory_changes_version: __, ...older } = allCapabilities;
  const { operations } = world;
  operations.capabilities = older;
  await world.connection.check();
  operations.capabilities = { ...allCapabilities };
  operations.changes = [change('firewall')];
  await run();
  assert.deepEqual(await storedKinds(), [], 'discovery is not asked at every import');
  await world.database.pool.query(
    `update operations_connection set checked_at = checked_at - interval '6 minutes'`,
  );
  await run();
  assert.deepEqual(await storedKinds(), ['firewall']);
});

test('kinds of a newer operations are left out, and those behind them are read', async () => {
  world.operations.changes = [change('resized'), change('firewall'), change('disk_added')];
  await run();
  assert.deepEqual(await storedKinds(), ['firewall']);
  assert.equal(await lastError(), null);
});

test('a cursor that does not advance ends the run with a fixed sentence', async () => {
  const { operations } = world;
  operations.intercept = (request, response, path) => {
    if (path !== '/inventory/changes/') return false;
    asked.push(request.url!);
    response.writeHead(200).end(JSON.stringify({ changes: [], next_after: '5', has_more: true }));
    return true;
  };
  await run();
  assert.equal(asked.length, 2);
  assert.match((await lastError())!, /^The answer from operations was invalid/);
});

test('the list of another connection is read from its beginning', async () => {
  const { operations, connection } = world;
  operations.changes = [change('firewall'), change('reset')];
  await run();
  const save = (baseUrl: string) =>
    connection.save(systemActor, { baseUrl, token: operations.token, isEnabled: true });
  await save(operations.url.replace('127.0.0.1', 'localhost'));
  operations.changes = [change('rebooted')];
  await run();
  await save(operations.url);
  assert.deepEqual(await storedKinds(), ['firewall', 'rebooted', 'reset']);
  assert.deepEqual(asked, ['from the beginning', 'from the beginning']);
});
