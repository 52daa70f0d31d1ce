/**
 * Lets sensors in the hypervisor call monitors on the host's loopback: `/agent/v1` of host-address:PORT is asked of
 * 127.0.0.1:PORT, and nothing else of it.
 *
 * The sockets are bound to the management link itself. Bound to its address alone they would answer on every link of the
 * host, because Linux takes packets for any of its addresses wherever they arrive.
 */
import { once } from 'node:events';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type Server,
  type ServerResponse,
} from 'node:http';
import koffi from 'koffi';
import { CodedError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';

const afInet = 2;
const sockStream = 1;
const sockNonblock = 0o4000;
const sockCloexec = 0o2000000;
const solSocket = 1;
const soReuseAddress = 2;
const soBindToDevice = 25;

export interface Forwarder {
  stop(): Promise<void>;
}

/** Starts one forwarder per port; throws `lab.forward_failed` when a port can't be bound. */
export async function forwardSensorApi(
  ends: { hostLink: string; hostAddress: string },
  ports: readonly number[],
): Promise<Forwarder> {
  const servers: Server[] = [];
  const stop = async () => {
    for (const server of servers) server.closeAllConnections();
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  };
  for (const port of ports) {
    // As the monitor, which ends idle connections later than a sensor does.
    const server = createServer({ keepAliveTimeout: 72_000 }, (call, answer) => forward(call, answer, port));
    try {
      server.listen({ fd: openOnLink(ends.hostLink, ends.hostAddress, port) });
      await once(server, 'listening');
    } catch (error) {
      await stop();
      const message = `Port ${port} of ${ends.hostAddress} can't be forwarded: ${(error as Error).message}`;
      throw new CodedError('lab.forward_failed', message, {}, error);
    }
    servers.push(server);
  }
  return { stop };
}

/** A TCP socket at this address that takes connections of one link only; Node has no option for that. */
function openOnLink(link: string, address: string, port: number): number {
  const library = koffi.load(null);
  const socket = library.func('int socket(int domain, int type, int protocol)');
  const setOption = library.func(
    'int setsockopt(int fd, int level, int name, const void *value, uint32_t length)',
  );
  const bind = library.func('int bind(int fd, const void *address, uint32_t length)');
  const close = library.func('int close(int fd)');
  const fd: number = socket(afInet, sockStream | sockNonblock | sockCloexec, 0);
  if (fd < 0) throw new Error(`no socket (errno ${koffi.errno()})`);
  const one = Buffer.from([1, 0, 0, 0]);
  const name = Buffer.from(`${link}\0`);
  const end = Buffer.alloc(16);
  end.writeUInt16LE(afInet, 0);
  end.writeUInt16BE(port, 2);
  end.set(parseAddress(address)!, 4);
  const isBound =
    setOption(fd, solSocket, soReuseAddress, one, one.length) === 0 &&
    setOption(fd, solSocket, soBindToDevice, name, name.length) === 0 &&
    bind(fd, end, end.length) === 0;
  if (isBound) return fd;
  const errno = koffi.errno();
  close(fd);
  throw new Error(errno === koffi.os.errno.EADDRINUSE ? 'it is taken' : `errno ${errno}`);
}

function forward(call: IncomingMessage, answer: ServerResponse, port: number): void {
  const path = call.url ?? '';
  if (!/^\/agent\/v1(\/[\w-]+)+$/.test(path)) {
    call.resume();
    const message = 'Only /agent/v1 of the monitor is forwarded here.';
    const body = JSON.stringify({ error: { code: 'not_found', message } });
    answer.writeHead(404, { 'content-type': 'application/json' }).end(body);
    return;
  }
  const target = requestHttp({
    ...{ host: '127.0.0.1', port, path, method: call.method!, headers: withoutHops(call.headers) },
    agent: false,
  });
  target.on('response', (reply) => {
    answer.writeHead(reply.statusCode!, withoutHops(reply.headers));
    reply.pipe(answer);
    // An answer that breaks off must not look whole.
    reply.on('error', () => answer.destroy());
  });
  // A program that is down is refused here, so its caller sees a reset and tries again later.
  target.on('error', () => answer.destroy());
  answer.on('close', () => target.destroy());
  call.pipe(target);
}

/** The headers that are not about one connection alone. */
function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const { connection: _connection, 'keep-alive': _keepAlive, ...rest } = headers;
  return rest;
}
