import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import type { EvidenceStatus } from '#sensor/evidence/index.ts';
import { socketPath } from './socket-path.ts';
import type { StatusLine } from './status.ts';

/**
 * Status of a running sensor for its own host: a socket in its state directory that sends the status and every live
 * window as JSON lines.
 *
 * Guarantees: only users with access to the state directory can read it. A slow reader is disconnected. If the socket
 * can not be created, the sensor runs without it.
 */
export type { SensorStatus, StatusLine } from './status.ts';
export { createStatusServer } from './status-server.ts';

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
