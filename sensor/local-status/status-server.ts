import { chmodSync, unlinkSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { LocalWindow } from '#sensor/collection/index.ts';
import { socketPath } from './socket-path.ts';
import type { SensorStatus, StatusLine } from './status.ts';

/** A reader with more unread bytes is disconnected. */
const unreadBytesMax = 4 * 1024 * 1024;
const readersMax = 8;

export type StatusServer = ReturnType<typeof createStatusServer>;

/** Creates the server; it listens after `start`. */
export function createStatusServer(options: {
  stateDirectory: string;
  reporter: Reporter;
  status(): SensorStatus;
}) {
  const readers = new Set<Socket>();
  const server = createServer((reader) => {
    if (readers.size >= readersMax) return reader.destroy();
    readers.add(reader);
    reader.on('close', () => readers.delete(reader));
    reader.on('error', () => reader.destroy());
    reader.resume();
    tell(reader, { kind: 'status', status: options.status() });
  });

  function tell(reader: Socket, line: StatusLine): void {
    reader.write(`${JSON.stringify(line)}\n`);
    if (reader.writableLength > unreadBytesMax) reader.destroy();
  }

  return {
    name: 'local status',
    /** Sends a window and the present status to every reader. */
    publish(window: LocalWindow) {
      if (readers.size === 0) return;
      const status = options.status();
      for (const reader of readers) {
        tell(reader, { kind: 'status', status });
        tell(reader, { kind: 'window', window });
      }
    },
    async start() {
      const path = socketPath(options.stateDirectory);
      try {
        // A leftover of a killed sensor: a running one holds the spool's lock, so the socket can not be in use.
        unlinkSync(path);
      } catch {
        // There is none.
      }
      await new Promise<void>((resolve) => {
        server.once('error', (error) => {
          options.reporter.warn('no local status socket, "sensor top" and "check" can not show this sensor', {
            why: describeError(error),
          });
          resolve();
        });
        server.listen(path, () => {
          chmodSync(path, 0o600);
          resolve();
        });
      });
    },
    async stop() {
      for (const reader of readers) reader.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
