import { chmodSync, unlinkSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { LocalWindow } from '#sensor/collection/index.ts';
import type { SensorStatus, StatusLine } from './index.ts';
import { socketPath } from './socket-path.ts';

/** A reader with more than this unread is cut off. */
const unreadBytesMax = 4 * 1024 * 1024;
const readersMax = 8;

export interface StatusServer extends Part {
  /** Tells every reader of a window, and how the sensor stands by then. */
  publish(window: LocalWindow): void;
}

/** Makes the part; nothing listens before `start`. */
export function createStatusServer(options: {
  stateDirectory: string;
  reporter: Reporter;
  status(): SensorStatus;
}): StatusServer {
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
    publish(window) {
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
        // What a sensor that was killed has left; a running one holds the spool's lock, so this can't be its.
        unlinkSync(path);
      } catch {
        // None there.
      }
      await new Promise<void>((resolve) => {
        server.once('error', (error) => {
          options.reporter.warn('no local status, "sensor top" and "check" can not see this sensor', {
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
