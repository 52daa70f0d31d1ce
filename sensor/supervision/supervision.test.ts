import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import koffi from 'koffi';
import { silentReporter } from '#common/reporter/index.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { temporaryFolder } from '#sensor/testing/sample-minutes.ts';
import { createSupervision } from './index.ts';

const dontWait = 0x40;

/** A service manager's socket; `receive` waits for one datagram. */
function listen(path: string) {
  const c = koffi.load(null);
  const socket = c.func('int socket(int domain, int type, int protocol)');
  const bind = c.func('int bind(int fd, const void *address, uint32_t length)');
  const recv = c.func('int64_t recv(int fd, void *bytes, size_t length, int flags)');
  const close = c.func('int close(int fd)');
  const fd: number = socket(1, 2, 0);
  const name = Buffer.from(path.startsWith('@') ? `\0${path.slice(1)}` : `${path}\0`);
  const address = Buffer.concat([Buffer.from([1, 0]), name]);
  assert.equal(bind(fd, address, address.length), 0);
  const bytes = Buffer.alloc(256);
  return {
    async receive(): Promise<string> {
      const length: number = await new Promise((resolve, reject) => {
        recv.async(fd, bytes, bytes.length, 0, (error: unknown, got: bigint) =>
          error ? reject(error) : resolve(Number(got)),
        );
      });
      return bytes.toString('utf8', 0, length);
    },
    /** Datagrams that have come. */
    count(): number {
      let count = 0;
      while (recv(fd, bytes, bytes.length, dontWait) >= 0) count += 1;
      return count;
    },
    close: () => close(fd),
  };
}

test('the service manager is notified when the sensor is ready, and regularly that it is alive', async (t) => {
  for (const path of [join(temporaryFolder(t), 'notify'), `@${uniqueName()}`]) {
    const manager = listen(path);
    const part = createSupervision({ notifySocket: path, watchdogMs: 40, reporter: silentReporter });
    await part.start();
    part.ready();
    assert.equal(await manager.receive(), 'READY=1');
    assert.equal(await manager.receive(), 'WATCHDOG=1');
    assert.equal(await manager.receive(), 'WATCHDOG=1');
    await part.stop();
    manager.close();
  }
});

test('the service manager is notified every ten seconds, so that a sensor that stands still for 100 s of 120 goes on', async (t) => {
  const path = join(temporaryFolder(t), 'notify');
  const manager = listen(path);
  const part = createSupervision({ notifySocket: path, watchdogMs: 120_000, reporter: silentReporter });
  t.mock.timers.enable({ apis: ['setInterval'] });
  await part.start();
  t.mock.timers.tick(60_000);
  assert.equal(manager.count(), 6);
  await part.stop();
  manager.close();
});

test('without a service manager, or with one that is gone, the sensor continues', async (t) => {
  for (const notifySocket of [null, join(temporaryFolder(t), 'missing')]) {
    const part = createSupervision({ notifySocket, watchdogMs: null, reporter: silentReporter });
    await part.start();
    part.ready();
    await part.stop();
  }
});
