/**
 * Whether an insert arrived whose answer never came.
 *
 * ClickHouse takes the first insert under a token and leaves out the others of the same table and day. So a row of no site is
 * inserted under the token in question: if it is there afterwards, the insert did not arrive and never will, however late it comes; if it
 * is not, the insert arrived as a whole.
 */
import type { Engine } from './engine-store.ts';
import { type Column, numbers, Rows, texts } from './native-columns.ts';
import { ch, number, plain, text } from './statement.ts';

export const daySeconds = 86_400;

const markColumns: Column<{ minute: number; batchId: string }>[] = [
  numbers('UInt32', 'site_id', () => 0),
  numbers('DateTime', 'minute', ({ minute }) => minute),
  texts('capture', ({ batchId }) => batchId),
];

/** Answers that are remembered: of a batch that failed each upload asks. */
const knownMax = 4096;

export type Arrivals = ReturnType<typeof createArrivals>;

export function createArrivals(engine: Engine) {
  let known = new Map<string, boolean>();

  async function ask(
    { batchId, table, day }: { batchId: string; table: string; day: number },
    token: string,
  ): Promise<boolean> {
    // The day's last minute, so that it is kept for as long as any row of the batch.
    const minute = (day + 1) * daySeconds - 60;
    const mark = new Rows(markColumns);
    mark.add([{ minute, batchId }]);
    await engine.insert({ table, columns: mark.names }, mark.encode(), token);
    const [found] = await engine.rows<{ marks: number }>(ch`
      select count() as marks from ${plain(table)}
      where site_id = 0 and minute = toDateTime(${number(minute)}, 'UTC') and capture = ${text(batchId)}`);
    return found!.marks === 0;
  }

  return {
    /** Whether the rows of a batch are in this table and day (of time since 1970). After it they are there, or never will be. */
    async has(of: { batchId: string; table: string; day: number }, token: string): Promise<boolean> {
      const answer = known.get(token) ?? (await ask(of, token));
      if (known.size >= knownMax) known = new Map();
      known.set(token, answer);
      return answer;
    },
  };
}
