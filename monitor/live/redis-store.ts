/**
 * Live windows in Redis or Valkey, for several machines.
 *
 * Every step is one script, so limits hold for every reader. A full store must report an error instead of dropping
 * windows. Minutes are not affected by its failures.
 */
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { LiveHost, LiveWindow } from '#contracts/sensor-api/live.ts';
import { createRedisConnection } from '#service-kit/redis/index.ts';
import {
  aheadMs,
  decodedBytes,
  type LiveBounds,
  type LiveRate,
  type LiveStore,
  rateOf,
  rateSeconds,
  type StoredWindow,
  type WindowRange,
} from './live-store.ts';

interface RedisStoreOptions extends LiveBounds {
  /** `redis://user:password@host:port/database` or `rediss://…`. Never logged. */
  url: string;
  reporter: Reporter;
}

type Head = Omit<StoredWindow, 'hosts'>;

export function createRedisStore(options: RedisStoreOptions): LiveStore {
  const connection = createRedisConnection({
    url: options.url,
    title: 'live store',
    codePrefix: 'live.store',
    evictionHarm: 'so windows would be lost without an error',
    reporter: options.reporter,
  });
  const { client, ask } = connection;
  const windows = createWindows(connection, options);
  return {
    async add(sensor, runId, given) {
      await connection.requireNoEviction();
      const add = () => windows.add(sensor, runId, given);
      const [stored, duplicates, tooOld] = await add().catch(async (error: unknown) => {
        // Perhaps only expired windows fill it.
        if (!(error instanceof CodedError) || error.code !== 'live.store_full') throw error;
        if ((await windows.trim(sensor.siteId)) === 0) throw error;
        return add();
      });
      return { stored, duplicates, too_old: tooOld };
    },
    async list(range) {
      const { matching, found } = await windows.read(range.siteId, range, false);
      const listed: StoredWindow[] = [];
      for (let i = 0; i < found.length; i += 2) {
        const head = JSON.parse(found[i]!.toString()) as Head;
        listed.push({ ...head, hosts: unpackHosts(found[i + 1]!) });
      }
      return {
        windows: listed,
        isLimited: listed.length > 0 && listed.length < matching,
        isTrimmed: matching >= options.historyMax,
      };
    },
    async listRates(siteId) {
      const nowMs = options.now?.() ?? Number(await ask(() => client.sendCommand(['TIME'])).then(timeOf));
      const range = {
        sinceMs: nowMs - rateSeconds * 1000 + 1,
        limit: options.historyMax,
        hostsMax: Number.MAX_SAFE_INTEGER,
        bytesMax: Number.MAX_SAFE_INTEGER,
      };
      const { found } = await windows.read(siteId, range, true);
      return newestRates(found.map((text) => JSON.parse(text.toString()) as Head));
    },
    async prune() {
      // Keys expire with their newest window, and each upload trims its site: this is for sites with few windows.
      if (!client.isReady) return 0;
      let count = 0;
      for await (const keys of client.scanIterator({ MATCH: 'svc-live:{*}:index', COUNT: 500 })) {
        for (const key of keys) {
          const site = /\{(\d+)\}/.exec(key)?.[1];
          if (site) count += await windows.trim(Number(site));
        }
      }
      return count;
    },
    findProblem: connection.findProblem,
    start: connection.start,
    stop: connection.stop,
  };
}

/** The scripts, with their arguments. */
function createWindows(
  { client, bytes, ask }: ReturnType<typeof createRedisConnection>,
  { historySeconds, historyMax, now }: LiveBounds,
) {
  const historyMs = String(historySeconds * 1000);
  const nowText = () => (now ? String(now()) : '');
  return {
    /** Returns how many were stored, known already, and too old. */
    async add(sensor: { id: number; siteId: number }, runId: string, windows: readonly LiveWindow[]) {
      const given = windows.flatMap((window) => [
        `${sensor.id} ${runId} ${window.startedAtMs} ${window.capture}`,
        String(window.startedAtMs),
        String(window.hosts.length),
        JSON.stringify(headOf(sensor.id, window)),
        packHosts(window.hosts),
      ]);
      const bounds = [nowText(), historyMs, String(historyMax), String(aheadMs)];
      const answer = await ask(() =>
        client.eval(addScript, { keys: keysOf(sensor.siteId), arguments: [...bounds, ...given] }),
      );
      return answer as [number, number, number];
    },
    /** Returns how many windows were deleted because of their age. */
    async trim(siteId: number) {
      const bounds = [nowText(), historyMs, String(historyMax)];
      return (await ask(() =>
        client.eval(trimScript, { keys: keysOf(siteId), arguments: bounds }),
      )) as number;
    },
    /** How many windows there are, and those within the limits: their heads alone, or each with its hosts after it. */
    async read(
      siteId: number,
      { sinceMs, limit, hostsMax, bytesMax }: Omit<WindowRange, 'siteId'>,
      headsOnly: boolean,
    ): Promise<{ matching: number; found: Buffer[] }> {
      const given = [sinceMs, Math.min(limit, historyMax), hostsMax].map(String);
      const size = [bytesMax, decodedBytes.window, decodedBytes.host].map(String);
      const answer = await ask(() =>
        bytes.eval(listScript, {
          keys: keysOf(siteId),
          arguments: [nowText(), historyMs, ...given, headsOnly ? '1' : '0', ...size],
        }),
      );
      const [matching, found] = answer as unknown as [number, Buffer[]];
      return { matching, found };
    },
  };
}

/** The first of each capture, by sensor and capture; the newest windows come first. */
function newestRates(heads: readonly Head[]): LiveRate[] {
  const newest = new Map<string, LiveRate>();
  for (const head of heads) {
    const key = `${head.sensorId} ${head.capture}`;
    if (!newest.has(key)) newest.set(key, rateOf(head));
  }
  return [...newest.values()].sort(
    (a, b) => a.sensorId - b.sensorId || Buffer.compare(Buffer.from(a.capture), Buffer.from(b.capture)),
  );
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

// Scripts that Redis runs atomically. A site has three keys: a stream of windows in the order of arrival, an index of
// stream ids by start time, and the stream id of each identity, to detect repetitions.
//
// A full store refuses the script before it changes anything; trimming is never refused.

const common = `
local function nowMs(text)
  if text ~= '' then return tonumber(text) end
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local function streamId(place)
  local ms, sequence = string.match(place, '(%d+)-(%d+)')
  return string.format('%.0f-%.0f', tonumber(ms), tonumber(sequence))
end
local function forget(places)
  for _, place in ipairs(places) do
    local id = streamId(place)
    local found = redis.call('XRANGE', KEYS[1], id, id)
    if found[1] then redis.call('HDEL', KEYS[3], found[1][2][2]) end
    redis.call('XDEL', KEYS[1], id)
    redis.call('ZREM', KEYS[2], place)
  end
  return #places
end
local function trim(now, history, max)
  local aged = forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - history))
  local surplus = redis.call('ZCARD', KEYS[2]) - max
  if surplus > 0 then forget(redis.call('ZRANGE', KEYS[2], 0, surplus - 1)) end
  return aged
end
`;

/** ARGV: now or '', history in ms, most windows, ms ahead; then identity, start, host rows, head, hosts of each window. */
const addScript = `${common}
local now, history = nowMs(ARGV[1]), tonumber(ARGV[2])
local stored, duplicates, old = 0, 0, 0
for i = 5, #ARGV, 5 do
  local started = tonumber(ARGV[i + 1])
  if now - started >= history or now - started < -tonumber(ARGV[4]) then
    old = old + 1
  elseif redis.call('HEXISTS', KEYS[3], ARGV[i]) == 1 then
    duplicates = duplicates + 1
  else
    local id = redis.call('XADD', KEYS[1], '*', 'identity', ARGV[i], 'rows', ARGV[i + 2], 'head', ARGV[i + 3], 'hosts', ARGV[i + 4])
    local ms, sequence = string.match(id, '(%d+)-(%d+)')
    local place = string.format('%016.0f-%010.0f', tonumber(ms), tonumber(sequence))
    redis.call('HSET', KEYS[3], ARGV[i], place)
    redis.call('ZADD', KEYS[2], started, place)
    stored = stored + 1
  end
end
trim(now, history, tonumber(ARGV[3]))
local newest = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
if newest[2] then
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, string.format('%.0f', tonumber(newest[2]) + history)) end
end
return { stored, duplicates, old }
`;

/** ARGV: now or '', history in ms, most windows. Also runs in a full store, because it only deletes. */
const trimScript = `${common}
return trim(nowMs(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]))
`;

/**
 * ARGV: now or '', history in ms, since in ms, most windows, most host rows, '1' for windows without hosts, most bytes, bytes
 * of a window, bytes of a host row.
 */
const listScript = `${common}
local after, since = nowMs(ARGV[1]) - tonumber(ARGV[2]), tonumber(ARGV[3])
local from = since > after and string.format('%.0f', since) or '(' .. string.format('%.0f', after)
local matching = redis.call('ZCOUNT', KEYS[2], from, '+inf')
local places = redis.call('ZREVRANGEBYSCORE', KEYS[2], '+inf', from, 'LIMIT', 0, ARGV[4])
local found, rows, bytes = {}, 0, 0
for _, place in ipairs(places) do
  local id = streamId(place)
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if entry then
    rows = rows + tonumber(entry[2][4])
    bytes = bytes + tonumber(ARGV[8]) + tonumber(ARGV[9]) * tonumber(entry[2][4])
    if (rows > tonumber(ARGV[5]) or bytes > tonumber(ARGV[7])) and #found > 0 then break end
    found[#found + 1] = entry[2][6]
    if ARGV[6] ~= '1' then found[#found + 1] = entry[2][8] end
  end
end
return { matching, found }
`;
