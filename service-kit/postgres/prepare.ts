/**
 * Statements are prepared by the connection that runs them: PostgreSQL parses each text once, and keeps its plan where the values
 * make no difference by its own estimate. Planning costs several times what it takes to read a few rows.
 */
import { createHash } from 'node:crypto';
import { type KyselyPlugin, RawNode } from 'kysely';
import type pg from 'pg';
import { isStalePlan, type Queryable } from './queryable.ts';

/** Texts that a connection prepares; those beyond are planned at each call, so that made-up filters take no memory without end. */
const statementsMax = 500;

/** In front of texts whose plan depends on their values. */
const customPlan = '/* custom plan */ ';

const keepCustom: KyselyPlugin = {
  transformQuery: ({ node }) =>
    RawNode.is(node)
      ? RawNode.create(node.sqlFragments.with(0, `${customPlan}${node.sqlFragments[0]}`), node.parameters)
      : node,
  transformResult: async ({ result }) => result,
};

/**
 * The same database, for statements over ranges of time: they are planned for their values at each call. PostgreSQL would
 * compare them by a plan for ranges of a guessed length, which is wrong for long ones.
 */
export const withCustomPlans = (db: Queryable): Queryable => db.withPlugin(keepCustom);

type Query = (...args: unknown[]) => Promise<unknown>;

/**
 * Prepares what this connection is asked with values; without values a text may hold several statements. `always`: also what
 * is marked to be planned for its values.
 */
export function prepareStatements(client: pg.PoolClient, always: boolean): void {
  const query = client.query.bind(client) as unknown as Query;
  /** By text; null: never to be prepared again. */
  const names = new Map<string, string | null>();
  const nameOf = (text: string): string | null => {
    const known = names.get(text);
    if (known !== undefined) return known;
    if (names.size >= statementsMax || (!always && text.startsWith(customPlan))) return null;
    const name = createHash('sha256').update(text).digest('hex').slice(0, 32);
    names.set(text, name);
    return name;
  };
  const ask = async (name: string, text: string, values: unknown) => {
    try {
      return await query({ name, text, values });
    } catch (error) {
      // A migration of another process changed a type in its answer: the statement can be asked, but not by this name. A
      // transaction is lost by then.
      if (!isStalePlan(error)) throw error;
      names.set(text, null);
      if (client.getTransactionStatus() !== 'I') throw error;
      return await query(text, values);
    }
  };
  const preparing = (...args: unknown[]): unknown => {
    const [text, values, callback] = args;
    const isPreparable = typeof text === 'string' && Array.isArray(values) && values.length > 0;
    const name = isPreparable ? nameOf(text) : null;
    if (name === null) return query(...args);
    const answer = ask(name, text as string, values);
    if (typeof callback !== 'function') return answer;
    answer.then(
      (result) => callback(null, result),
      (error: unknown) => callback(error),
    );
  };
  client.query = preparing as typeof client.query;
}
