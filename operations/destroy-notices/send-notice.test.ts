import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { createTestClock, systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { noticePath, verifyNotice } from '#contracts/destroy-notice/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { listPendingNotices } from '#operations/destroy-notices/index.ts';
import { destroyNoticeJobs } from '#operations/destroy-notices/send-notice.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createJobRunner } from '#service-kit/jobs/index.ts';

interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A monitor that answers with these statuses in turn and then repeats the last one; without any it hangs up. */
async function startMonitor(statuses: number[]) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    received.push({ path: request.url!, headers: request.headers, body: Buffer.concat(pieces) });
    const status = statuses[Math.min(received.length, statuses.length) - 1];
    if (status === undefined) return void request.socket.destroy();
    response.statusCode = status;
    response.end('{"destroyed_applied": 1}');
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const stop = async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  };
  return { received, url, stop, [Symbol.asyncDispose]: stop };
}

test('NET-2.8: a destroyed server is told to the monitor, signed, again and again until it is acknowledged', async () => {
  await using world = await createWorld();
  await using monitor = await startMonitor([503, 401, 200]);
  const clock = createTestClock(1_790_000_000_000);
  const secret = 'shared secret';
  const sender = createJobRunner({
    db: () => world.database.db,
    handlers: destroyNoticeJobs({
      db: () => world.database.db,
      clock,
      reporter: silentReporter,
      monitor: { url: monitor.url, secret },
    }),
    clock: systemClock,
    reporter: silentReporter,
  });
  const { tenant } = await world.createCustomer('Leaving');
  const { serverId } = await world.deploy(tenant, 'leaving');
  const { vms } = await world.servers.listInventory({ afterId: 0, limit: 10 });
  const beganMs = world.clock.nowMs();
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await sender.drain();
  assert.equal(monitor.received.length, 0, 'nothing is told before the guest is gone');
  await world.jobs.drain();
  for (let attempt = 0; attempt < 4; attempt += 1) {
    await sender.drain();
    await world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');
    await clock.advance(60_000);
  }
  assert.equal(monitor.received.length, 3, 'after the acknowledgement nothing more is sent');
  for (const [index, { path, headers, body }] of monitor.received.entries()) {
    const now = 1_790_000_000 + index * 60;
    const [timestamp, signature] = [headers['x-operations-timestamp'], headers['x-operations-signature']];
    assert.equal(path, noticePath);
    assert.equal(timestamp, String(now), 'each attempt is signed anew');
    assert.ok(verifyNotice(secret, timestamp, String(signature), body, now));
    const { destroyed_at: destroyedAt, ...rest } = JSON.parse(body.toString());
    assert.deepEqual(rest, {
      cluster_id: world.clusterId,
      virtual_machines: [{ id: serverId, mac_addresses: [vms[0]!.interfaces[0]!.macAddress] }],
    });
    assert.ok(Date.parse(destroyedAt) >= beganMs && Date.parse(destroyedAt) <= world.clock.nowMs());
  }
  assert.deepEqual(await listPendingNotices(world.database.db), []);
  const { rows } = await world.database.pool.query(
    'select attempts, acknowledged_at is not null as done, last_error from destroy_notices',
  );
  assert.deepEqual(rows, [{ attempts: 3, done: true, last_error: null }]);
});

test('NET-2.8: a notice waits while there is no monitor, and says why it waits', async () => {
  await using world = await createWorld();
  await using monitor = await startMonitor([]);
  const sender = createJobRunner({
    db: () => world.database.db,
    handlers: destroyNoticeJobs({
      db: () => world.database.db,
      clock: systemClock,
      reporter: silentReporter,
      monitor: { url: monitor.url, secret: 'x' },
    }),
    clock: systemClock,
    reporter: silentReporter,
  });
  const { tenant } = await world.createCustomer('Alone');
  const { serverId } = await world.deploy(tenant, 'alone');
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await world.jobs.drain();
  await sender.drain();
  const [pending] = await listPendingNotices(world.database.db);
  assert.equal(pending?.serverId, serverId);
  assert.match(pending?.lastError ?? '', /^the monitor does not answer/);
});

test('a notice is not sent to an http address of another machine; it waits, and says which setting allows it', async () => {
  await using world = await createWorld();
  const asked: string[] = [];
  const sendWith = (monitor: { url: string; allowsInsecureHttp?: boolean }) =>
    createJobRunner({
      db: () => world.database.db,
      handlers: destroyNoticeJobs({
        db: () => world.database.db,
        clock: systemClock,
        reporter: silentReporter,
        monitor: { secret: 'x', ...monitor },
        fetch: async (url) => {
          asked.push(String(url));
          return new Response('{}');
        },
      }),
      clock: systemClock,
      reporter: silentReporter,
    });
  const { tenant } = await world.createCustomer('In the open');
  const { serverId } = await world.deploy(tenant, 'open');
  await world.servers.destroyServer(systemActor, tenant.id, serverId);
  await world.jobs.drain();
  await sendWith({ url: 'http://192.0.2.1:8090' }).drain();
  assert.deepEqual(asked, []);
  const [pending] = await listPendingNotices(world.database.db);
  assert.match(pending?.lastError ?? '', /not encrypted.*https.*SVC_ALLOW_INSECURE_HTTP=1/);
  await world.database.pool.query('update jobs set run_at = svc_now() where finished_at is null');
  await sendWith({ url: 'http://192.0.2.1:8090', allowsInsecureHttp: true }).drain();
  assert.deepEqual(asked, [`http://192.0.2.1:8090${noticePath}`]);
  assert.deepEqual(await listPendingNotices(world.database.db), [], 'what waited was not lost');
});
