import { createConnection } from 'node:net';
import { createInterface } from 'node:readline';
import { socketPath } from './socket-path.ts';
import type { StatusLine } from './status.ts';

export interface SensorConnection {
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
