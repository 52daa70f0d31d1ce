import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { startMonitorServer } from './testing/server.ts';

const connectionsMax = 16;

test('SVC_MONITOR_CONNECTIONS_MAX connections are held and no more', async () => {
  await using server = await startMonitorServer({ SVC_MONITOR_CONNECTIONS_MAX: String(connectionsMax) });
  const { port } = new URL(server.url);
  const open = async () => {
    const socket = connect(Number(port), '127.0.0.1');
    await once(socket, 'connect');
    return socket;
  };
  const held = await Promise.all(Array.from({ length: connectionsMax }, open));
  const isAnswered = (socket: Socket) =>
    new Promise<boolean>((resolve) => {
      socket.on('data', () => resolve(true)).on('close', () => resolve(false));
      socket.write('GET /sign-in HTTP/1.1\r\nHost: x\r\n\r\n');
    });
  assert.deepEqual(new Set(await Promise.all(held.map(isAnswered))), new Set([true]));
  const over = await open();
  const isOverAnswered = await isAnswered(over);
  for (const socket of [...held, over]) socket.destroy();
  assert.equal(isOverAnswered, false, 'one more is closed without an answer');
});
