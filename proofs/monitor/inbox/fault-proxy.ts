/**
 * Stands between a program and its PostgreSQL and does to connections what networks do: delays, silence on both sides
 * without notice to either side, and resets just before a COMMIT arrives or just before its answer does.
 */
import { createConnection, createServer, type Server, type Socket } from 'node:net';

export const proxyFaults = ['latency', 'half_open', 'reset_before_commit', 'reset_after_commit'] as const;
export type ProxyFault = (typeof proxyFaults)[number];

export interface FaultProxy extends AsyncDisposable {
  /** The same database through the proxy. */
  readonly url: string;
  /** Lets a fault happen; resolves when it has, false when no connection gave it the occasion in time. */
  inject(fault: ProxyFault, random: () => number): Promise<boolean>;
}

interface Link {
  client: Socket;
  server: Socket;
  isSilent: boolean;
  delayMs: number;
}

const commitText = Buffer.from('commit\0');
const occasionMs = 5_000;

/** `databaseUrl` names a server by its socket folder. */
export async function startFaultProxy(databaseUrl: string): Promise<FaultProxy> {
  const target = new URL(databaseUrl);
  const path = `${target.searchParams.get('host')}/.s.PGSQL.5432`;
  const links = new Set<Link>();
  /** What happens to the next COMMIT, and who waits for it. */
  let trap: { isAfter: boolean; sprung: () => void } | null = null;

  function pass(link: Link, to: Socket, bytes: Buffer): void {
    if (link.isSilent) return;
    if (link.delayMs > 0) setTimeout(() => !to.destroyed && to.write(bytes), link.delayMs);
    else to.write(bytes);
  }

  const server: Server = createServer((client) => {
    const link: Link = { client, server: createConnection(path), isSilent: false, delayMs: 0 };
    links.add(link);
    let isCommitting = false;
    const close = () => {
      links.delete(link);
      link.client.destroy();
      link.server.destroy();
    };
    client.on('data', (bytes: Buffer) => {
      if (trap && bytes.includes(commitText)) {
        if (!trap.isAfter) {
          trap.sprung();
          trap = null;
          close();
          return;
        }
        isCommitting = true;
      }
      pass(link, link.server, bytes);
    });
    link.server.on('data', (bytes: Buffer) => {
      if (isCommitting && trap) {
        trap.sprung();
        trap = null;
        close();
        return;
      }
      isCommitting = false;
      pass(link, client, bytes);
    });
    for (const socket of [client, link.server]) socket.on('error', close).on('close', close);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as { port: number };

  return {
    url: `postgres://svc@127.0.0.1:${port}${target.pathname}`,
    async inject(fault, random) {
      const all = [...links];
      if (fault === 'latency') {
        for (const link of all) link.delayMs = 20 + random() * 200;
        await new Promise((wake) => setTimeout(wake, 500));
        for (const link of all) link.delayMs = 0;
        return all.length > 0;
      }
      if (fault === 'half_open') {
        const link = all[Math.floor(random() * all.length)];
        if (link) link.isSilent = true;
        return link !== undefined;
      }
      return new Promise<boolean>((resolve) => {
        const late = setTimeout(() => {
          trap = null;
          resolve(false);
        }, occasionMs);
        trap = {
          isAfter: fault === 'reset_after_commit',
          sprung: () => {
            clearTimeout(late);
            resolve(true);
          },
        };
      });
    },
    async [Symbol.asyncDispose]() {
      for (const { client, server: upstream } of links) {
        client.destroy();
        upstream.destroy();
      }
      await new Promise<void>((done) => server.close(() => done()));
    },
  };
}
