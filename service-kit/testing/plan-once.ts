import { createHash } from 'node:crypto';
import type pg from 'pg';

/**
 * Lets the pool's connections plan each statement once and keep its plan: on small tables planning costs more than all
 * else. Call before the pool is used.
 */
export function planOnce(pool: pg.Pool): void {
  const names = new Map<string, string>();
  const nameOf = (text: string) => {
    const name = names.get(text) ?? createHash('sha256').update(text).digest('hex').slice(0, 32);
    names.set(text, name);
    return name;
  };
  pool.options.options = `${pool.options.options ?? ''} -c plan_cache_mode=force_generic_plan`.trim();
  pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: readonly unknown[]) => unknown;
    // A COPY has no plan, and its parameters are the rows; EXPLAIN is asked for the plan of these values. A text
    // without parameters may hold several statements.
    const named = (first: unknown, ...rest: unknown[]) =>
      typeof first === 'string' &&
      !/^\s*(copy|explain)\b/i.test(first) &&
      Array.isArray(rest[0]) &&
      rest[0].length > 0
        ? query({ name: nameOf(first), text: first, values: rest[0] }, ...rest.slice(1))
        : query(first, ...rest);
    client.query = named as typeof client.query;
  });
}
