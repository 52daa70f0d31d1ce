/** The real gobgpd (Debian's package), which accepts the monitor as its neighbour. */
import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until as untilSo } from '#service-kit/testing/until.ts';

const run = promisify(execFile);

export const routerAs = 64_512;
export const monitorAs = 64_513;

/** An address of this machine that no other router of a test has: ports need not be found, and can't be taken. */
const ownAddress = () => `127.${[...randomBytes(3)].map((byte) => (byte % 254) + 1).join('.')}`;

async function accepts(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
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
  const [host, port, apiPort] = [ownAddress(), 1790, 1791];
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
local-address-list = ["${host}"]
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
    return spawn('/usr/bin/gobgpd', ['-f', config, '--api-hosts', `${host}:${apiPort}`, '-p'], {
      stdio: ['ignore', 'ignore', 'ignore'],
    });
  }
  const ask = async (...args: string[]): Promise<unknown> => {
    const { stdout } = await run('/usr/bin/gobgp', ['-u', host, '-p', String(apiPort), '-j', ...args]);
    return stdout.trim() === '' ? null : JSON.parse(stdout);
  };
  const ready = async () => {
    // Each question starts a program, so the first is asked when there is an answer.
    const isReady = async () => (await accepts(host, apiPort)) && (await ask('global')) !== null;
    while (!(await isReady().catch(() => false))) {
      if (child.exitCode !== null) throw new Error(`gobgpd ended with ${child.exitCode}`);
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
    peer: { name: `${routerAs}@${host}:${port}`, host, port, as: routerAs },
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
