/**
 * Loaded before `./svc` by the processes of the proof (`node --import`): changes the text of a module as it is read, so that
 * the real program has a known fault, or a shorter window. Fails where the text to be changed is not found.
 */
import { registerHooks } from 'node:module';

export type PlantedFault =
  | 'processes alone'
  | 'read then write'
  | 'fixed windows'
  | 'refused ones count'
  | 'half a window'
  | 'clocks of processes';

/** By the end of a module's path: what is replaced. */
type Edits = Record<string, [from: string, to: string][]>;

const script = 'service-kit/limits/take-script.ts';
const store = 'service-kit/limits/redis-store.ts';

const editsOf: Record<PlantedFault, Edits> = {
  'processes alone': { 'service-kit/limits/limits.ts': [['url === null ? null :', '1 ? null :']] },
  'read then write': {
    [store]: [
      [
        'client.evalSha(digest, call)',
        `(async () => {
          const key = call.keys[0]!;
          const nowMicros = Date.now() * 1000;
          await client.zRemRangeByScore(key, 0, nowMicros - Number(call.arguments[1]));
          const count = await client.zCard(key);
          const oldest = (await client.zRangeWithScores(key, 0, 0))[0]?.score ?? nowMicros;
          if (count >= Number(call.arguments[2])) return [0, count, nowMicros - oldest];
          await client.zAdd(key, { score: nowMicros, value: call.arguments[3]! });
          return [1, count + 1, nowMicros - oldest];
        })()`,
      ],
    ],
  },
  'fixed windows': {
    [script]: [['text(now - window)', 'text(now - now % window)']],
  },
  'refused ones count': {
    [script]: [
      [
        'if count < capacity then',
        "if count >= capacity then redis.call('ZADD', KEYS[1], text(now), ARGV[4]) end\nif count < capacity then",
      ],
    ],
  },
  'half a window': { [script]: [['text(now - window)', 'text(now - window / 2)']] },
  'clocks of processes': {
    [store]: [
      ["nowMicros ? String(nowMicros()) : ''", 'String(Date.now() * 1000 + (process.pid % 4) * 700_000)'],
    ],
  },
};

interface Orders {
  fault: PlantedFault | null;
  /** Of key budgets; the program's own without it. */
  windowMs: number | null;
}

const { fault, windowMs } = JSON.parse(process.env.SVC_PROOF_ORDERS!) as Orders;
const edits: Edits = {
  ...(fault !== null && editsOf[fault]),
  ...(windowMs !== null && {
    'operations/surfaces/customer-api/index.ts': [
      [
        'capacity: deps.requestsPerMinute, windowMs: 60_000',
        `capacity: deps.requestsPerMinute, windowMs: ${windowMs}`,
      ],
    ],
  }),
};

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    for (const [file, changes] of Object.entries(edits)) {
      if (!url.endsWith(`/${file}`)) continue;
      let text = String(loaded.source);
      for (const [from, to] of changes) {
        if (!text.includes(from)) throw new Error(`${file} has no "${from}"`);
        text = text.replace(from, () => to);
      }
      loaded.source = text;
    }
    return loaded;
  },
});
