import { createHash } from 'node:crypto';
import { chmodSync, unlinkSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { CaptureState, LocalWindow } from '#sensor/collection/index.ts';
import type { ActiveIncident } from '#sensor/detection/index.ts';
import type { EvidenceStatus } from '#sensor/evidence/index.ts';
import type { FilterStatus } from '#sensor/filter/index.ts';
import type { LiveStatus } from '#sensor/live/index.ts';
import type { ScanStatus } from '#sensor/scanner/index.ts';
import type { SpoolStatus } from '#sensor/spool/index.ts';

/**
 * Status of a running sensor for its own host: a socket in its state directory that sends the status and every live
 * window as JSON lines.
 *
 * Guarantees: only users with access to the state directory can read it. A slow reader is disconnected. If the socket
 * can not be created, the sensor runs without it.
 */

/** `2 capture files of attacks wait (1.5 MiB), 1 is recorded`. */
export function describeEvidence({ waitingFiles, waitingBytes, recording }: EvidenceStatus): string {
  const files =
    waitingFiles === 1
      ? '1 capture file of an attack waits'
      : `${waitingFiles} capture files of attacks wait`;
  const size = waitingFiles === 0 ? '' : ` (${(waitingBytes / 1024 / 1024).toFixed(1)} MiB)`;
  const now = recording === 0 ? '' : `, ${recording} ${recording === 1 ? 'is' : 'are'} recorded`;
  return `${files}${size}${now}`;
}

interface SensorConnection {
  close(): void;
}

/**
 * Connects to the running sensor of this state directory; null when there is none. `onLine` receives its status at once
 * and with each window; `onEnd` is called when the sensor stops.
 */
export function followSensor(
  stateDirectory: string,
  onLine: (line: StatusLine) => void,
  onEnd: () => void,
): Promise<SensorConnection | null> {
  return new Promise((resolve) => {
    const socket = createConnection(socketPath(stateDirectory));
    socket.once('error', () => resolve(null));
    socket.once('connect', () => {
      createInterface({ input: socket }).on('line', (text) => onLine(JSON.parse(text) as StatusLine));
      socket.once('close', onEnd);
      resolve({ close: () => socket.destroy() });
    });
  });
}

/** Limit of the kernel for socket paths. */
const pathBytesMax = 107;

/** Socket path for this state directory. A deep directory has its socket elsewhere, named by a digest. */
function socketPath(stateDirectory: string): string {
  const path = join(stateDirectory, 'sensor.sock');
  if (Buffer.byteLength(path) <= pathBytesMax) return path;
  const digest = createHash('sha256').update(path).digest('hex').slice(0, 16);
  return join(tmpdir(), `svc-sensor-${process.getuid?.() ?? 0}-${digest}.sock`);
}

export interface SensorStatus {
  version: string;
  monitor: string;
  site: string;
  startedAtMs: number;
  captures: CaptureState[];
  spool: Pick<SpoolStatus, 'pendingUploads' | 'pendingBytes' | 'roomMinutes'>;
  live: LiveStatus;
  incidents: ActiveIncident[];
  /** Null where scans are switched off; absent from a sensor before 0.1.24. */
  scans?: ScanStatus | null;
  /** Absent from a sensor before 0.1.24. */
  evidence?: EvidenceStatus;
  /** Of each uplink; absent from an older sensor. */
  filters?: FilterStatus[];
}

/** One line of the socket. */
export type StatusLine = { kind: 'status'; status: SensorStatus } | { kind: 'window'; window: LocalWindow };

/** A reader with more unread bytes is disconnected. */
const unreadBytesMax = 4 * 1024 * 1024;
const readersMax = 8;

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
