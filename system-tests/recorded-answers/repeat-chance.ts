/** Makes chance repeatable in a process and in test databases, so that ids and their order are the same in each run. */
import crypto, { createHash, type UUID } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { mock } from 'node:test';
import type { TestDatabase } from '#service-kit/testing/index.ts';

/** Until `mock.restoreAll()` and another `syncBuiltinESMExports()`, which the returned function calls. */
export function repeatChance(): () => void {
  let drawn = 0;
  const draw = (size: number): Buffer => {
    drawn += 1;
    return createHash('shake256', { outputLength: size }).update(String(drawn)).digest();
  };
  mock.method(Math, 'random', () => 0.5);
  mock.method(crypto, 'randomBytes', (size: number, done?: (error: null, bytes: Buffer) => void) => {
    const bytes = draw(size);
    return done ? queueMicrotask(() => done(null, bytes)) : bytes;
  });
  mock.method(crypto, 'randomInt', (first: number, second?: number) => {
    const [from, to] = second === undefined ? [0, first] : [first, second];
    return from + (draw(4).readUInt32BE() % (to - from));
  });
  mock.method(crypto, 'randomUUID', (): UUID => {
    const hex = draw(16).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}` as UUID;
  });
  syncBuiltinESMExports();
  return () => {
    mock.restoreAll();
    syncBuiltinESMExports();
  };
}

/** Ids that PostgreSQL makes count up. */
export async function countIds({ pool }: TestDatabase): Promise<void> {
  await pool.query(`
    create sequence test_ids;
    grant usage on test_ids to public;
    create function test_uuid() returns uuid language sql as
      $$ select ('ee000000-0000-4000-8000-' || lpad(nextval('public.test_ids')::text, 12, '0'))::uuid $$;
    do $$ declare one record; begin
      for one in select table_name, column_name, column_default from information_schema.columns
        where table_schema = 'public' and column_default like '%gen_random_uuid()%'
      loop
        execute format('alter table %I alter column %I set default %s', one.table_name, one.column_name,
          replace(one.column_default, 'gen_random_uuid()', 'test_uuid()'));
      end loop;
    end $$`);
}
