/**
 * A connection to Redis or Valkey that waits for nothing: the program starts without it, and a request without an answer
 * fails soon. A store with an eviction policy is refused, because it would drop windows without an error.
 */
import { createClient, RESP_TYPES } from '@redis/client';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';

const connectTimeoutMs = 5_000;
const answerTimeoutMs = 5_000;
const reconnectMaxMs = 5_000;
/** Maximum number of requests without an answer; above it the store counts as not answering. */
const waitingMax = 1_000;
/** How long the checked eviction policy is valid. */
const policyMs = 30_000;

type Client = ReturnType<typeof openClient>;

export interface RedisConnection {
  client: Client;
  /** The same client; texts in its answers are bytes. */
  bytes: ReturnType<typeof withBytes>;
  /** Runs a command. Throws `live.store_full` and `live.store_unavailable`. */
  ask<T>(work: () => Promise<T>): Promise<T>;
  /** Throws `live.store_evicts`, and as `ask`. */
  requireNoEviction(): Promise<void>;
  /** The present problem, as a sentence for the operator; null without one. */
  findProblem(): Promise<string | null>;
  start(): Promise<void>;
  stop(): Promise<void>;
}

function openClient(url: string) {
  return createClient({
    url,
    disableOfflineQueue: true,
    commandsQueueMaxLength: waitingMax,
    socket: {
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (retries) => Math.min(reconnectMaxMs, 100 * 2 ** Math.min(retries, 6)),
    },
  });
}

const withBytes = (client: Client) => client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });

export function createRedisConnection(url: string, reporter: Reporter): RedisConnection {
  const client = openClient(url);
  let lastError = '';
  let isStarted = false;
  const requireNoEviction = createPolicyCheck(client, reporter);

  client.on('error', (error: unknown) => {
    const text = describeError(error);
    if (text !== lastError) reporter.warn('the live store does not answer', { why: text });
    lastError = text;
  });
  client.on('ready', () => {
    if (lastError) reporter.info('the live store answers again');
    lastError = '';
    requireNoEviction.forget();
  });

  return {
    client,
    bytes: withBytes(client),
    ask,
    requireNoEviction,
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

/** Every failure becomes one of our errors. */
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

/** Asks for the policy again after a while, and after `forget`. */
function createPolicyCheck(client: Client, reporter: Reporter) {
  let policy: { problem: string | null; atMs: number } | null = null;
  const check = async (): Promise<void> => {
    if (!policy || performance.now() - policy.atMs > policyMs) {
      const problem = await readPolicy(client);
      if (problem && problem !== policy?.problem)
        reporter.error('the live store is not used', { why: problem });
      policy = { problem, atMs: performance.now() };
    }
    if (policy.problem) throw new CodedError('live.store_evicts', policy.problem);
  };
  return Object.assign(check, {
    forget() {
      policy = null;
    },
  });
}

/** What is wrong with the policy; null for one that never evicts. */
async function readPolicy(client: Client): Promise<string | null> {
  const info = await ask(() => client.info('memory'));
  const value = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'unknown';
  if (value === 'noeviction') return null;
  return (
    `The live store evicts keys when it is full (maxmemory-policy is ${value}), so windows would be lost without an error. ` +
    'Set maxmemory-policy to noeviction.'
  );
}
