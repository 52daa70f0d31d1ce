import type { Kysely } from 'kysely';

/** Rows are typed where they are read (`sql<Row>`), so the schema parameter stays open. */
// biome-ignore lint/suspicious/noExplicitAny: kysely's way to say "any table".
export type Queryable = Kysely<any>;
