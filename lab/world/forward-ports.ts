/**
 * Lets the hypervisor call programs that listen on the host's loopback: host-address:PORT becomes 127.0.0.1:PORT.
 *
 * Bound to the management link's host end only, so nothing but this world's hypervisor can use it.
 */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { CodedError } from '#common/errors/index.ts';

export interface Forwarder {
  stop(): Promise<void>;
}

/** Starts one forwarder per port; throws `lab.forward_failed` when a port can't be bound. */
export async function forwardPorts(hostAddress: string, ports: readonly number[]): Promise<Forwarder> {
  const open = new Set<Socket>();
  const servers: Server[] = [];
  const stop = async () => {
    for (const socket of open) socket.destroy();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  for (const port of ports) {
    const server = createServer({ allowHalfOpen: true }, (caller) => join(caller, port, open));
    server.listen(port, hostAddress);
    try {
      await once(server, 'listening');
    } catch (error) {
      await stop();
      const message = `Port ${port} of ${hostAddress} can't be forwarded: ${(error as Error).message}`;
      throw new CodedError('lab.forward_failed', message, {}, error);
    }
    servers.push(server);
  }
  return { stop };
}

function join(caller: Socket, port: number, open: Set<Socket>): void {
  const target = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  for (const [one, other] of [
    [caller, target],
    [target, caller],
  ] as const) {
    open.add(one);
    // A program that is down is refused here, so its caller sees a reset and tries again later.
    one.on('error', () => other.destroy());
    one.on('close', () => {
      open.delete(one);
      other.destroy();
    });
    one.pipe(other);
  }
}
