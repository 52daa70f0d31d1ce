import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';

/** G7: rounds in which many keys are created at once where one more is allowed; counts rounds that passed 25. */
export async function proveKeyCap(
  world: World,
  options: { rounds: number; atOnce: number },
): Promise<{ tried: number; passed: number; wrongWins: number }> {
  const customer = await world.createCustomer('Cap');
  const { pool } = world.database;
  let [tried, passed, wrongWins] = [0, 0, 0];
  for (let i = 0; i < 24; i += 1) await world.createKey(customer);
  for (let round = 0; round < options.rounds; round += 1) {
    const outcomes = await Promise.allSettled(
      Array.from({ length: options.atOnce }, () => world.createKey(customer)),
    );
    tried += outcomes.length;
    if (outcomes.filter((one) => one.status === 'fulfilled').length !== 1) wrongWins += 1;
    const { rows } = await pool.query<{ active: number }>(
      'select count(*) as active from api_keys where person_id = $1 and revoked_at is null',
      [customer.owner.id],
    );
    if (rows[0]!.active > 25) passed += 1;
    const extra = await pool.query<{ key_id: string }>(
      'select key_id from api_keys where person_id = $1 and revoked_at is null order by created_at desc limit $2',
      [customer.owner.id, Math.max(0, rows[0]!.active - 24)],
    );
    for (const { key_id } of extra.rows) await world.apiKeys.revokeKey(systemActor, key_id);
  }
  return { tried, passed, wrongWins };
}

/** G7: notes of one key's use from many calls at once; resolves with how often the row was written in that minute. */
export async function proveUseNotes(world: World, calls: number): Promise<number> {
  const { pool } = world.database;
  await pool.query(`create table if not exists use_notes (at timestamptz default now());
    create or replace function note_use() returns trigger language plpgsql as
      $$ begin insert into use_notes default values; return new; end $$;
    create or replace trigger use_notes after update of last_used_at on api_keys
      for each row when (old.last_used_at is distinct from new.last_used_at) execute function note_use()`);
  const token = await world.createKey(await world.createCustomer('Noted'));
  const verdicts = await Promise.all(Array.from({ length: calls }, () => world.apiKeys.verifyKey(token)));
  await Promise.all(verdicts.map((principal) => world.apiKeys.noteUse({ ...principal!, isUseStale: true })));
  return (await pool.query<{ n: number }>('select count(*) as n from use_notes')).rows[0]!.n;
}

/** Whether creates that count without a lock are seen. */
export async function isCapMissed(): Promise<boolean> {
  await using world = await createWorld();
  using _ = plantSql((text) => text.replace(/(select 1 from people where id = \$1) for update/, '$1'));
  const { passed } = await proveKeyCap(world, { rounds: 3, atOnce: 40 });
  return passed > 0;
}

/** Whether a note of every use is seen. */
export async function isNoteMissed(): Promise<boolean> {
  await using world = await createWorld();
  using _ = plantSql((text) =>
    text.replace(/and \(last_used_at is null or last_used_at < [^)]*\)\s*-[^)]*\)/, ''),
  );
  return (await proveUseNotes(world, 50)) > 1;
}
