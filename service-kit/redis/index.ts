/**
 * Redis or Valkey as a shared store of the server programs: a connection that no program waits for.
 *
 * A store that evicts keys is refused, and its URL, which may hold a password, is in no message.
 */
import { createRequire } from 'node:module';
import type * as RedisClient from '@redis/client';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

// A connection to Redis or Valkey that waits for nothing: the program starts without it, and a request without an answer
// fails soon. A store with an eviction policy is refused, because it would drop data without an error.

const connectTimeoutMs = 5_000;
const answerTimeoutMsDefault = 5_000;
const reconnectMaxMs = 5_000;
/** Maximum number of requests without an answer; above it the store counts as not answering. */
const waitingMax = 1_000;
/** How long the checked eviction policy is valid. */
const policyMs = 30_000;

interface RedisConnectionOptions {
  /** `redis://user:password@host:port/database` or `rediss://…`. Never logged. */
  url: string;
  /** What messages call it, such as `live store`. */
  title: string;
  /** The first part of its error codes, such as `live.store`. */
  codePrefix: string;
  /** What eviction would do, as the end of a sentence: `so windows would be lost without an error`. */
  evictionHarm: string;
  /** A request fails after it. */
  answerTimeoutMs?: number;
  reporter: Reporter;
}

/** Loaded where a store is configured: its hundreds of modules take a tenth of a program's start. */
const loadRedis = () => createRequire(import.meta.url)('@redis/client') as typeof RedisClient;

type Client = ReturnType<typeof openClient>;
type Ask = <T>(work: () => Promise<T>) => Promise<T>;

function openClient(url: string) {
  return loadRedis().createClient({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: waitingMax,
    socket: {
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries) => Math.min(reconnectMaxMs, 100 * 2 ** Math.min(retries, 6)),
    },
  });
}

const withBytes = (client: Client) =>
  client.withTypeMapping({ [loadRedis().RESP_TYPES.BLOB_STRING]: Buffer });

export function createRedisConnection(options: RedisConnectionOptions) {
  const { title, reporter } = options;
  const client = openClient(options.url);
  let lastError = '';
  let isStarted = false;
  let generation = 0;
  const ask = createAsk(options);
  const requireNoEviction = createPolicyCheck(client, ask, options);

  client.on('error', (error: unknown) => {
    const text = describeError(error);
    if (text !== lastError) reporter.warn(`the ${title} does not answer`, { why: text });
    lastError = text;
  });
  client.on('ready', () => {
    generation += 1;
    if (lastError) reporter.info(`the ${title} answers again`);
    lastError = '';
    requireNoEviction.forget();
  });

  return {
    client,
    /** The same client; texts in its answers are bytes. */
    bytes: withBytes(client),
    /** Grows with each connection that was made: what the store held before may be lost. */
    get generation(): number {
      return generation;
    },
    /** Runs a command. Throws `<prefix>_full` and `<prefix>_unavailable`. */
    ask,
    /** Throws `<prefix>_evicts`, and as `ask`. */
    requireNoEviction,
    /** The present problem, as a sentence for the operator; null without one. */
    async findProblem(): Promise<string | null> {
      if (!client.isReady) return `The ${title} does not answer${lastError ? `: ${lastError}` : ''}.`;
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
      // The program works without the store, so the start does not wait for it.
      await Promise.race([
        client.connect().then(() => requireNoEviction()),
        new Promise((resolve) =>
          setTimeout(resolve, options.answerTimeoutMs ?? answerTimeoutMsDefault).unref(),
        ),
      ]).catch(() => {});
    },
    async stop() {
      if (!isStarted) return;
      isStarted = false;
      client.destroy();
    },
  };
}

/** Every failure becomes one of our errors. */
function createAsk(options: RedisConnectionOptions): Ask {
  const { title, codePrefix, answerTimeoutMs = answerTimeoutMsDefault } = options;
  return async (work) => {
    const patience = waitInTurns(answerTimeoutMs);
    try {
      return await Promise.race([work(), patience.isOver]);
    } catch (error) {
      if (error instanceof CodedError) throw error;
      const text = describeError(error);
      if (/\bOOM\b/.test(text)) throw new CodedError(`${codePrefix}_full`, `The ${title} is full.`);
      throw new CodedError(`${codePrefix}_unavailable`, `The ${title} does not answer: ${text}.`);
    } finally {
      patience.end();
    }
  };
}

/** Turns of the event loop in which an answer could have been read before a wait is over. */
const turns = 10;

/**
 * Rejects after this time, if this process could read an answer all the while: a pause of the process itself, in which nothing
 * is sent or read, counts as one turn of many.
 */
function waitInTurns(timeoutMs: number): { isOver: Promise<never>; end(): void } {
  const { promise, reject } = Promise.withResolvers<never>();
  let left = turns;
  let timer: NodeJS.Timeout;
  const next = () => {
    timer = setTimeout(() => {
      left -= 1;
      if (left === 0) reject(new Error('no answer in time'));
      else next();
    }, timeoutMs / turns);
  };
  next();
  return { isOver: promise, end: () => clearTimeout(timer) };
}

/** Asks for the policy again after a while, and after `forget`. */
function createPolicyCheck(client: Client, ask: Ask, options: RedisConnectionOptions) {
  const { title, codePrefix, reporter } = options;
  let policy: { problem: string | null; atMs: number } | null = null;
  const check = async (): Promise<void> => {
    if (!policy || performance.now() - policy.atMs > policyMs) {
      const info = await ask(() => client.info('memory'));
      const problem = judgePolicy(info, options);
      if (problem && problem !== policy?.problem)
        reporter.error(`the ${title} is not used`, { why: problem });
      policy = { problem, atMs: performance.now() };
    }
    if (policy.problem) throw new CodedError(`${codePrefix}_evicts`, policy.problem);
  };
  return Object.assign(check, {
    forget() {
      policy = null;
    },
  });
}

/** What is wrong with the policy; null for one that never evicts. */
function judgePolicy(info: string, { title, evictionHarm }: RedisConnectionOptions): string | null {
  const value = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'unknown';
  if (value === 'noeviction') return null;
  return (
    `The ${title} evicts keys when it is full (maxmemory-policy is ${value}), ${evictionHarm}. ` +
    'Set maxmemory-policy to noeviction.'
  );
}
