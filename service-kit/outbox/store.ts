/** Claims of targets: who may send to one, until when, by the clock of the database. */
import { type RawBuilder, sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** A claimed target. Another worker's claim has a higher term. */
export interface Claim {
  id: number;
  term: number;
}

/** For the `where` of a claim: no worker has this row. */
export function isUnclaimed(alias: string): RawBuilder<boolean> {
  const until = sql.ref(`${alias}.claimed_until`);
  return sql<boolean>`(${until} is null or ${until} <= svc_now())`;
}

/** For the `set` of a claim. The row must be locked, with `skip locked`, by the statement that chose it. */
export function setClaim(claimSeconds: number): RawBuilder<unknown> {
  return sql`claimed_until = svc_now() + make_interval(secs => ${claimSeconds}), term = term + 1`;
}

/** Lengthens the claim; false when another worker has it, or the target was disabled or deleted. */
export async function renewClaim(
  db: Queryable,
  table: string,
  { id, term }: Claim,
  claimSeconds: number,
): Promise<boolean> {
  const { rows } = await sql`
    update ${sql.table(table)} set claimed_until = svc_now() + make_interval(secs => ${claimSeconds})
    where id = ${id} and term = ${term} returning 1`.execute(db);
  return rows.length === 1;
}

/** Gives the target back, unless another worker has it by now. */
export async function releaseClaim(db: Queryable, table: string, { id, term }: Claim): Promise<void> {
  await sql`update ${sql.table(table)} set claimed_until = null where id = ${id}
    and term = ${term}`.execute(db);
}
