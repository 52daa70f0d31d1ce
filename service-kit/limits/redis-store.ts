/**
 * Limits in Redis or Valkey.
 *
 * A request that is not answered in time sets the store aside at once, so that only those under way have waited; a probe,
 * which is an event of its own, brings it back. Without an answer for a second nothing asks it but that probe.
 */
import { createHash, randomBytes } from 'node:crypto';
import { systemClock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import { type Reporter, silentReporter } from '#common/reporter/index.ts';
import { createRedisConnection } from '#service-kit/redis/index.ts';
import type { Bounds, Counted, EventId } from './event-log.ts';

export interface RedisLimitsOptions {
  /** Never logged. */
  url: string;
  /** The program; two programs may share a store. */
  program: string;
  reporter: Reporter;
  /** Microseconds of the time that counts, for tests; the store's own clock otherwise. */
  nowMicros?: () => number;
  /** Another script, for proofs that plant a fault. */
  script?: string;
  answerTimeoutMs?: number;
  probeMs?: number;
}

/** A store in the same network answers in a millisecond; a request waits no longer than this. */
const answerTimeoutMsDefault = 500;
const probeMsDefault = 1_000;

type Connection = ReturnType<typeof createRedisConnection>;

/** The commands; they throw what the connection throws. */
function createCommands({ client, ask }: Connection, options: RedisLimitsOptions) {
  const { program, nowMicros, script = takeScript } = options;
  const digest = createHash('sha1').update(script).digest('hex');
  // Events of two processes never have the same name.
  const instance = randomBytes(6).toString('base64url');
  const nameOf = (event: number) => `${instance}:${event.toString(36)}`;
  const keyOf = ({ log, key }: { log: string; key: string }) => `svc-limits:${program}:${log}:${key}`;

  async function take(order: TakeOrder): Promise<Counted> {
    const { windowMs, capacity, event } = order;
    const now = nowMicros ? String(nowMicros()) : '';
    const later = order.later.flatMap(({ id, ageMs }) => [nameOf(id), micros(ageMs)]);
    const given = [now, micros(windowMs), String(capacity), nameOf(event), ...later];
    const call = { keys: [keyOf(order)], arguments: given };
    const answer = await ask(() =>
      client.evalSha(digest, call).catch((error: unknown) => {
        if (!describeError(error).includes('NOSCRIPT')) throw error;
        return client.eval(script, call);
      }),
    );
    const [allowed, count, ageMicros] = answer as unknown as [number, number, number];
    return { isAllowed: allowed === 1, count, oldestAgeMs: ageMicros / 1000 };
  }

  return {
    take,
    /** An event that shows whether the store takes any. */
    probe: () => take({ log: 'probe', key: instance, event: 0, later: [], capacity: 1, windowMs: 1_000 }),
    remove: (stored: StoredEvent) => ask(() => client.zRem(keyOf(stored), nameOf(stored.event))),
  };
}

export function createRedisLimits(options: RedisLimitsOptions): LimitStore {
  const { reporter } = options;
  const connection = createRedisConnection({
    url: options.url,
    title: 'limit store',
    codePrefix: 'limits.store',
    evictionHarm: 'so limits would be forgotten without an error',
    answerTimeoutMs: options.answerTimeoutMs ?? answerTimeoutMsDefault,
    // What it would say is said below, once for every cause.
    reporter: silentReporter,
  });
  const commands = createCommands(connection, options);
  let problem: string | null = 'The limit store is not connected.';
  let stopping = new AbortController();
  let probing: Promise<void> = Promise.resolve();

  const warn = (why: string) => reporter.warn('limits are counted in this process alone', { why });

  function note(found: string | null): void {
    if (stopping.signal.aborted) return;
    if (found !== null && problem === null) warn(found);
    if (found === null && problem !== null) reporter.info('limits are counted in the limit store');
    problem = found;
  }

  /** Whether the store answers, is writable and keeps what it is given. */
  async function probe(): Promise<void> {
    try {
      await connection.requireNoEviction();
      await commands.probe();
      note(null);
    } catch (error) {
      note(describeError(error));
    }
  }

  async function keepProbing(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await probe();
      await systemClock.wait(options.probeMs ?? probeMsDefault, signal);
    }
  }

  return {
    get generation() {
      return connection.generation;
    },
    get problem() {
      return problem;
    },
    async take(order) {
      if (problem !== null) return null;
      return commands.take(order).catch((error: unknown) => {
        note(describeError(error));
        return null;
      });
    },
    async remove(stored) {
      if (problem !== null) return;
      await commands.remove(stored).catch((error: unknown) => note(describeError(error)));
    },
    async start() {
      stopping = new AbortController();
      await connection.start();
      await probe();
      if (problem !== null) warn(problem);
      probing = keepProbing();
    },
    async stop() {
      stopping.abort();
      await connection.stop();
      await probing;
      problem = 'The limit store is not connected.';
    },
  };
}

const micros = (ms: number): string => String(Math.round(ms * 1000));

/**
 * Decides on one event and records it, in one step.
 *
 * The log is a sorted set: its members are the events, their scores the microseconds at which they were counted. The time is
 * the store's, so it does not matter how wrong the clocks of the processes are. When that clock was set back, stamps in
 * the future become the present: a key may then be refused for up to a window, and is never allowed more than its limit.
 * The script adds an event under its own name, so a repeated one counts once. It expires with its newest event.
 *
 * Old events are removed last: a full store refuses only the first write of a script, and has to refuse the new event.
 *
 * KEYS: the log. ARGV: now in µs ('' for the store's clock), window in µs, capacity, the event, then earlier events of the
 * same process: event, age in µs, and so on. Returns whether it is allowed (1 or 0), the events within the window, and the
 * age of the oldest in µs.
 */
export const takeScript = `
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local window, capacity = tonumber(ARGV[2]), tonumber(ARGV[3])
local function text(number) return string.format('%.0f', number) end
local newest = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')
if newest[2] and tonumber(newest[2]) > now then
  for _, event in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. text(now), '+inf')) do
    redis.call('ZADD', KEYS[1], 'XX', text(now), event)
  end
end
for i = 5, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], 'NX', text(now - tonumber(ARGV[i + 1])), ARGV[i])
end
local outside = text(now - window)
local count, allowed = redis.call('ZCOUNT', KEYS[1], '(' .. outside, '+inf'), 0
if count < capacity then
  redis.call('ZADD', KEYS[1], text(now), ARGV[4])
  count, allowed = count + 1, 1
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', outside)
if allowed == 1 or #ARGV > 4 then
  redis.call('PEXPIRE', KEYS[1], text(math.ceil(window / 1000)))
end
local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return { allowed, count, now - tonumber(oldest[2] or now) }
`;

interface StoredEvent {
  /** The limit's name. */
  log: string;
  key: string;
  event: EventId;
}

interface TakeOrder extends StoredEvent, Bounds {
  /** Earlier events of this process that the store may not know. One that it knows is not counted twice. */
  later: readonly { id: EventId; ageMs: number }[];
}

/** Where several processes count together. */
export interface LimitStore {
  /** Grows when the store may have lost what it held. */
  readonly generation: number;
  /** Records an event if there is room for it; null while the store is not used. Never rejects. */
  take(order: TakeOrder): Promise<Counted | null>;
  /** Forgets an event. Never rejects; without the store the event goes with its window. */
  remove(event: StoredEvent): Promise<void>;
  /** Why it is not used, as a sentence; null while it is. */
  readonly problem: string | null;
  start(): Promise<void>;
  stop(): Promise<void>;
}
