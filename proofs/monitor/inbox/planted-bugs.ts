/**
 * Bugs put into a worker's process by changing its SQL on the way to the server. Proofs plant them to show that they would
 * see them; nothing of the program has a switch for it.
 */
import pg from 'pg';
import type { Queryable } from '#service-kit/postgres/index.ts';

export const plantedBugs = ['facts_apart', 'end_first', 'no_fence', 'blind_retry'] as const;
/** `facts_first` is no bug: facts are committed before the upload's end, as by an engine without transactions. */
export type PlantedBug = (typeof plantedBugs)[number] | 'facts_first';

type Query = (this: unknown, config: unknown, ...rest: unknown[]) => unknown;
type Ask = (text: string, values?: readonly unknown[]) => Promise<unknown>;

const isFence = (text: string) => /^\s*select case when current_setting.* from leases/s.test(text);
const isLock = (text: string) => /select id from inbox_uploads where id = any.*for update/s.test(text);
const isToken = (text: string) => /^\s*insert into appended_uploads/.test(text);
const isEnd = (text: string) => /^update inbox_uploads set state = \$1/.test(text);

/** Plants a bug in every connection of this process. */
export function plantBug(bug: PlantedBug): void {
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const usual = prototype.query;
  prototype.query = function (config, ...rest) {
    const text = typeof config === 'string' ? config : (config as { text?: string }).text;
    if (typeof text !== 'string') return usual.call(this, config, ...rest);
    const ask: Ask = (statement, values) =>
      usual.call(this, statement, values && [...values]) as Promise<unknown>;
    const rewritten = rewrite(bug, text, (values) => (Array.isArray(values) ? values : []), rest[0], ask);
    return rewritten ?? usual.call(this, config, ...rest);
  };
}

function rewrite(
  bug: PlantedBug,
  text: string,
  list: (values: unknown) => unknown[],
  given: unknown,
  ask: Ask,
): Promise<unknown> | null {
  const values = list(given);
  // Facts are committed before the upload's end, which is a transaction of its own.
  if ((bug === 'facts_apart' || bug === 'facts_first') && isEnd(text)) {
    return apart(ask).then(() => ask(text, values));
  }
  // And their tokens are forgotten, so that a repeat doubles them.
  if ((bug === 'facts_apart' || bug === 'blind_retry') && isToken(text)) {
    return ask(
      `select sensor_id as "sensorId", spool_id as "spoolId", sequence
      from unnest($1::bigint[], $2::uuid[], $3::bigint[]) as given (sensor_id, spool_id, sequence)`,
      values,
    );
  }
  // The upload's end is committed before its facts.
  if (bug === 'end_first' && isLock(text)) return endFirst(ask, text, values);
  if (bug === 'no_fence' && isFence(text)) {
    return ask('select 1 where $1::text is not null and $2::bigint is not null', values);
  }
  if (bug === 'blind_retry' && isLock(text)) return ask(text.replace("and state = 'pending'", ''), values);
  return null;
}

async function apart(ask: Ask): Promise<void> {
  await ask('commit');
  await ask('select pg_sleep(0.05)');
  await ask('begin');
}

async function endFirst(ask: Ask, text: string, values: readonly unknown[]): Promise<unknown> {
  const locked = await ask(text, values);
  await ask(
    "update inbox_uploads set state = 'applied', body = null, finished_at = svc_now() where id = any($1::bigint[]) and state = 'pending'",
    values,
  );
  await apart(ask);
  return locked;
}

/** A database whose transactions are tried again as they are when the commit's fate is unknown. */
export function retryingBlindly(db: Queryable): Queryable {
  return new Proxy(db, {
    get(target, property) {
      if (property !== 'transaction') return Reflect.get(target, property, target);
      return () => ({
        execute: async (work: (trx: Queryable) => Promise<unknown>) => {
          try {
            return await target.transaction().execute(work);
          } catch (error) {
            if (!/terminated|ECONN|EPIPE/.test(String(error))) throw error;
            return target.transaction().execute(work);
          }
        },
      });
    },
  });
}
