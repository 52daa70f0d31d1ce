/** The real gobgpd (Debian's package), which accepts the monitor as its neighbour. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until as untilSo } from '#service-kit/testing/until.ts';

const run = promisify(execFile);

export const routerAs = 64_512;
export const monitorAs = 64_513;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export interface RouterRoute {
  /** `198.51.100.7/32`, or the filter in gobgp's words. */
  prefix: string;
  nextHop: string | null;
  /** As numbers. */
  communities: number[];
  isStale: boolean;
  attributes: { type: number; value?: unknown }[];
}

export type Router = Awaited<ReturnType<typeof startRouter>>;

/** `families` are those of gobgpd's configuration. */
export async function startRouter(
  families: readonly string[] = ['ipv4-unicast', 'ipv6-unicast', 'ipv4-flowspec', 'ipv6-flowspec'],
) {
  const folder = await mkdtemp(join(tmpdir(), 'svc-gobgpd-'));
  const [port, apiPort] = [await freePort(), await freePort()];
  const config = join(folder, 'gobgpd.toml');
  const families_ = families.map(
    (name) => `[[neighbors.afi-safis]]
  [neighbors.afi-safis.config]
  afi-safi-name = "${name}"
  [neighbors.afi-safis.mp-graceful-restart.config]
  enabled = true`,
  );
  await writeFile(
    config,
    `[global.config]
as = ${routerAs}
router-id = "192.0.2.254"
port = ${port}
local-address-list = ["127.0.0.1"]
[[neighbors]]
[neighbors.config]
neighbor-address = "127.0.0.1"
peer-as = ${monitorAs}
[neighbors.transport.config]
passive-mode = true
[neighbors.timers.config]
idle-hold-time-after-reset = 1
[neighbors.graceful-restart.config]
enabled = true
restart-time = 120
${families_.join('\n')}
`,
  );
  let child = launch();
  function launch() {
    return spawn('/usr/bin/gobgpd', ['-f', config, '--api-hosts', `127.0.0.1:${apiPort}`, '-p'], {
      stdio: ['ignore', 'ignore', 'ignore'],
    });
  }
  const ask = async (...args: string[]): Promise<unknown> => {
    const { stdout } = await run('/usr/bin/gobgp', ['-p', String(apiPort), '-j', ...args]);
    return stdout.trim() === '' ? null : JSON.parse(stdout);
  };
  const ready = async () => {
    // Each question starts a program, so the first is asked when there is an answer.
    while (!(await accepts(apiPort))) await new Promise((done) => setTimeout(done, 20));
    for (;;) {
      const isUp = await ask('global').then(
        () => true,
        () => false,
      );
      if (isUp) return;
      await new Promise((done) => setTimeout(done, 20));
    }
  };
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  await ready();
  return {
    /** As the settings name it. */
    peer: { name: `${routerAs}@127.0.0.1:${port}`, host: '127.0.0.1', port, as: routerAs },
    ask,
    async routes(family: 'ipv4' | 'ipv6' | 'ipv4-flowspec' | 'ipv6-flowspec'): Promise<RouterRoute[]> {
      const found = (await ask('global', 'rib', '-a', family)) as Record<string, RawPath[]> | null;
      return Object.entries(found ?? {}).flatMap(([prefix, paths]) =>
        paths.map((path) => toRoute(prefix, path)),
      );
    },
    async isEstablished(): Promise<boolean> {
      const [neighbor] = (await ask('neighbor')) as { state: { session_state?: number } }[];
      return neighbor?.state.session_state === 6;
    },
    stop,
    /** After `stop`. */
    async start(): Promise<void> {
      child = launch();
      await ready();
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface RawPath {
  stale?: boolean;
  attrs: { type: number; nexthop?: string; communities?: number[]; value?: unknown }[];
}

function toRoute(prefix: string, { attrs, stale }: RawPath): RouterRoute {
  const of = (type: number) => attrs.find((one) => one.type === type);
  return {
    prefix,
    nextHop: of(3)?.nexthop ?? of(14)?.nexthop ?? null,
    communities: of(8)?.communities ?? [],
    isStale: stale ?? false,
    attributes: attrs,
  };
}

/** Asks until it is so. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  await untilSo('the router and the monitor agree', 120_000, isSo);
}
