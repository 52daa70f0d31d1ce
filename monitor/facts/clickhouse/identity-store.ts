/** The number by which an installation knows its tables again. */
import type { Engine } from './engine-store.ts';
import { ch, plain, text } from './statement.ts';

/** Null: they have none yet. */
export async function readStoreId(engine: Engine): Promise<string | null> {
  const [row] = await engine.rows<{ id: string }>(
    ch`select toString(min(id)) as id from store_identity having count() > 0`,
  );
  return row?.id ?? null;
}

/** Gives the tables a number; of an earlier installation they had another one. */
export async function writeStoreId(engine: Engine, id: string): Promise<void> {
  await engine.run(plain('alter table store_identity delete where 1 settings mutations_sync = 1'));
  await engine.run(ch`insert into store_identity (id) select toUUID(${text(id)})`);
}

export async function hasClickhouseFacts(engine: Engine): Promise<boolean> {
  const [row] = await engine.rows<{ has: number }>(ch`
    select (select count() from (select 1 from capture_minutes where site_id > 0 limit 1)) + (select count() from (select 1 from host_minutes where site_id > 0 limit 1))
      + (select count() from (select 1 from application_facts where site_id > 0 limit 1)) as has`);
  return row!.has > 0;
}
