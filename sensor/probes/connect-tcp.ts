import { connect } from 'node:net';
import type { AttemptOutcome } from './index.ts';

/** Opens a connection and closes it again: the round trip is that of the handshake. */
export function connectTcp(host: string, port: number, signal: AbortSignal): Promise<AttemptOutcome> {
  return new Promise((resolve, reject) => {
    const startedMs = performance.now();
    const socket = connect({ host, port, signal });
    socket.once('connect', () => {
      resolve({ rttUs: (performance.now() - startedMs) * 1000 });
      socket.destroy();
    });
    socket.once('error', reject);
  });
}
