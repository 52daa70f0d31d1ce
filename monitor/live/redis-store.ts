/**
 * Live windows in Redis or Valkey, for several machines.
 *
 * Every step is one script, so limits hold for every reader. A store with an eviction policy is refused, because it
 * would drop windows without an error; a full store must report an error instead. Minutes are not affected by its
 * failures.
 */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { createClient, RESP_TYPES } from '@redis/client';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { LiveHost, LiveWindow } from '#contracts/sensor-api/live.ts';
import {
  aheadMs,
  type LiveBounds,
  type LiveRate,
  type LiveStore,
  rateOf,
  rateSeconds,
  type StoredWindow,
} from './live-store.ts';
import { addScript, listScript, trimScript } from './redis-scripts.ts';

const connectTimeoutMs = 5_000;
const answerTimeoutMs = 5_000;
const reconnectMaxMs = 5_000;
/** Maximum number of requests without an answer; above it the store counts as not answering. */
const waitingMax = 1_000;
/** How long the checked eviction policy is valid. */
const policyMs = 30_000;

export interface RedisStoreOptions extends LiveBounds {
  /** `redis://user:password@host:port/database` or `rediss://…`. Never logged. */
  url: string;
  reporter: Reporter;
}

type Head = Omit<StoredWindow, 'hosts'>;

export function createRedisStore(options: RedisStoreOptions): LiveStore {
  const { reporter, historySeconds, historyMax } = options;
  const client = createClient({
    url: options.url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: waitingMax,
    socket: {
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries) => Math.min(reconnectMaxMs, 100 * 2 ** Math.min(retries, 6)),
    },
  });
  const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  let lastError = '';
  let isStarted = false;
  let policy: { problem: string | null; atMs: number } | null = null;
  const historyMs = String(historySeconds * 1000);
  const nowText = () => (options.now ? String(options.now()) : '');

  client.on('error', (error: unknown) => {
    const text = describeError(error);
    if (text !== lastError) reporter.warn('the live store does not answer', { why: text });
    lastError = text;
  });
  client.on('ready', () => {
    if (lastError) reporter.info('the live store answers again');
    lastError = '';
    policy = null;
  });

  /** Runs a command; every failure becomes one of our errors. */
  async function ask<T>(work: () => Promise<T>): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no answer in time')), answerTimeoutMs);
    });
    try {
      return await Promise.race([work(), late]);
    } catch (error) {
      if (error instanceof CodedError) throw error;
      const text = describeError(error);
      if (/\bOOM\b/.test(text)) throw new CodedError('live.store_full', 'The live store is full.');
      throw new CodedError('live.store_unavailable', `The live store does not answer: ${text}.`);
    } finally {
      clearTimeout(timer);
    }
  }

  async function readPolicy(): Promise<string | null> {
    const info = await ask(() => client.info('memory'));
    const value = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'unknown';
    if (value === 'noeviction') return null;
    return (
      `The live store evicts keys when it is full (maxmemory-policy is ${value}), so windows would be lost without an error. ` +
      'Set maxmemory-policy to noeviction.'
    );
  }

  async function requireNoEviction(): Promise<void> {
    if (!policy || performance.now() - policy.atMs > policyMs) {
      const problem = await readPolicy();
      if (problem && problem !== policy?.problem)
        reporter.error('the live store is not used', { why: problem });
      policy = { problem, atMs: performance.now() };
    }
    if (policy.problem) throw new CodedError('live.store_evicts', policy.problem);
  }

  const trim = (siteId: number) =>
    ask(() =>
      client.eval(trimScript, {
        keys: keysOf(siteId),
        arguments: [nowText(), historyMs, String(historyMax)],
      }),
    ) as Promise<number>;

  async function read(
    siteId: number,
    range: { sinceMs: number; limit: number; hostsMax: number },
    headsOnly: boolean,
  ): Promise<{ matching: number; found: Buffer[] }> {
    const { sinceMs, limit, hostsMax } = range;
    const given = [sinceMs, Math.min(limit, historyMax), hostsMax].map(String);
    const answer = await ask(() =>
      bytes.eval(listScript, {
        keys: keysOf(siteId),
        arguments: [nowText(), historyMs, ...given, headsOnly ? '1' : '0'],
      }),
    );
    const [matching, found] = answer as unknown as [number, Buffer[]];
    return { matching, found };
  }

  return {
    async add(sensor, runId, windows) {
      await requireNoEviction();
      const given = windows.flatMap((window) => [
        `${sensor.id} ${runId} ${window.startedAtMs} ${window.capture}`,
        String(window.startedAtMs),
        String(window.hosts.length),
        JSON.stringify(headOf(sensor.id, window)),
        packHosts(window.hosts),
      ]);
      const bounds = [nowText(), historyMs, String(historyMax), String(aheadMs)];
      const run = () =>
        ask(() => client.eval(addScript, { keys: keysOf(sensor.siteId), arguments: [...bounds, ...given] }));
      const [stored, duplicates, tooOld] = (await run().catch(async (error: unknown) => {
        // Perhaps only expired windows fill it.
        if (!(error instanceof CodedError) || error.code !== 'live.store_full') throw error;
        if ((await trim(sensor.siteId)) === 0) throw error;
        return run();
      })) as [number, number, number];
      return { stored, duplicates, too_old: tooOld };
    },
    async list(range) {
      const { matching, found } = await read(range.siteId, range, false);
      const windows: StoredWindow[] = [];
      for (let i = 0; i < found.length; i += 2) {
        const head = JSON.parse(found[i]!.toString()) as Head;
        windows.push({ ...head, hosts: unpackHosts(found[i + 1]!) });
      }
      return { windows, isLimited: windows.length > 0 && windows.length < matching };
    },
    async listRates(siteId) {
      const nowMs = options.now?.() ?? Number(await ask(() => client.sendCommand(['TIME'])).then(timeOf));
      const range = {
        sinceMs: nowMs - rateSeconds * 1000 + 1,
        limit: historyMax,
        hostsMax: Number.MAX_SAFE_INTEGER,
      };
      const { found } = await read(siteId, range, true);
      const newest = new Map<string, LiveRate>();
      for (const text of found) {
        const rate = rateOf(JSON.parse(text.toString()) as Head);
        const key = `${rate.sensorId} ${rate.capture}`;
        if (!newest.has(key)) newest.set(key, rate);
      }
      return [...newest.values()].sort(
        (a, b) => a.sensorId - b.sensorId || Buffer.compare(Buffer.from(a.capture), Buffer.from(b.capture)),
      );
    },
    async prune() {
      // Keys expire with their newest window, and each upload trims its site: this is for sites with few windows.
      if (!client.isReady) return 0;
      let count = 0;
      for await (const keys of client.scanIterator({ MATCH: 'svc-live:{*}:index', COUNT: 500 })) {
        for (const key of keys) {
          const site = /\{(\d+)\}/.exec(key)?.[1];
          if (site) count += await trim(Number(site));
        }
      }
      return count;
    },
    async findProblem() {
      if (!client.isReady) return `The live store does not answer${lastError ? `: ${lastError}` : ''}.`;
      try {
        await requireNoEviction();
        return null;
      } catch (error) {
        return describeError(error);
      }
    },
    async start() {
      if (isStarted) return;
      isStarted = true;
      // Minutes do not need the store, so the start does not wait for it.
      await Promise.race([
        client.connect().then(() => requireNoEviction()),
        new Promise((resolve) => setTimeout(resolve, connectTimeoutMs).unref()),
      ]).catch(() => {});
    },
    async stop() {
      if (!isStarted) return;
      isStarted = false;
      client.destroy();
    },
  };
}

/** One hash slot, so that a cluster keeps a site together. */
function keysOf(siteId: number): string[] {
  return ['windows', 'index', 'identities'].map((name) => `svc-live:{${siteId}}:${name}`);
}

function timeOf(answer: unknown): number {
  const [seconds, micros] = answer as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

function headOf(sensorId: number, window: LiveWindow): Head {
  const { capture, role, startedAtMs, observedMs, hostsLeftOut } = window;
  const { packets, ipBytes, parserDropped, kernelDropped } = window.totals;
  return {
    sensorId,
    capture,
    role,
    startedAtMs,
    observedMs,
    packets,
    ipBytes,
    parserDropped,
    kernelDropped,
    hostsLeftOut,
  };
}

function packHosts(hosts: readonly LiveHost[]): Buffer {
  const rows = hosts.map(({ address, rxBytes, txBytes, packets }) => [address, rxBytes, txBytes, packets]);
  return zstdCompressSync(JSON.stringify(rows));
}

function unpackHosts(packed: Buffer): LiveHost[] {
  const rows = JSON.parse(zstdDecompressSync(packed).toString()) as [string, number, number, number][];
  return rows.map(([address, rxBytes, txBytes, packets]) => ({ address, rxBytes, txBytes, packets }));
}
