import { connect } from 'node:net';
import type { AttemptOutcome } from './attempt.ts';

/** Opens and closes a connection: the round trip is the time of the handshake. */
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
