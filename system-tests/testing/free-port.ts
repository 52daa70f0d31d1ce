import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ports that the kernel gives to programs that ask for any port, such as other tests and their connections. */
const firstPort = 20_000;
const ports = 10_000;

/**
 * A TCP port of this machine that no program listens on and that no other caller gets, in any process, until this process
 * ends: for programs that can't choose a port themselves, or that start again at the same one.
 */
export async function claimPort(): Promise<number> {
  const start = Math.floor(Math.random() * ports);
  for (let step = 0; step < ports; step += 1) {
    const port = firstPort + ((start + step) % ports);
    // An abstract socket is the claim; the kernel releases it with the process.
    const claim = await listen({ path: `\0svc-test-port-${port}` });
    if (claim === null) continue;
    const server = await listen({ port, host: '127.0.0.1' });
    if (server === null) {
      claim.close();
      continue;
    }
    server.close();
    await once(server, 'close');
    claim.unref();
    return port;
  }
  throw new Error('every port is taken');
}

/** Null when the address is taken. */
function listen(at: { path: string } | { port: number; host: string }) {
  const server = createServer((socket) => socket.destroy());
  return new Promise<typeof server | null>((resolve) => {
    server.once('error', () => resolve(null));
    server.listen(at, () => resolve(server));
  });
}
