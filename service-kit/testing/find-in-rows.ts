/** Looks for secrets in every row of every table: as text, and in the hexadecimal that binary columns are shown in. */
import type pg from 'pg';

/** Where one of the secrets stands, as `NAME in TABLE`. A secret is a text, or the bytes that are kept of it. */
export async function findInRows(
  pool: pg.Pool,
  secrets: Readonly<Record<string, string | Buffer>>,
): Promise<string[]> {
  const found: string[] = [];
  for (const { name, text } of await readTables(pool))
    for (const [secret, value] of Object.entries(secrets))
      if (formsOf(value).some((form) => text.includes(form))) found.push(`${secret} in ${name}`);
  return found;
}

/**
 * Every row of every table as text, in one statement. `shown` are expressions of single tables that stand for a row `t`.
 * A table whose file has no page has no row; most have none, and to read each costs more than a test.
 */
export async function readTables(
  pool: pg.Pool,
  shown: Readonly<Record<string, string>> = {},
): Promise<{ name: string; text: string }[]> {
  const { rows: tables } = await pool.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0`,
  );
  if (tables.length === 0) return [];
  const parts = tables.map(
    ({ name }) => `select ${literal(name)} as name,
      (select string_agg(${shown[name] ?? 't'}::text, E'\\n') from ${identifier(name)} t) as text`,
  );
  const { rows } = await pool.query<{ name: string; text: string | null }>(parts.join('\nunion all\n'));
  return rows.map(({ name, text }) => ({ name, text: text ?? '' }));
}

const literal = (name: string) => `'${name.replaceAll("'", "''")}'`;
const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;

function formsOf(secret: string | Buffer): string[] {
  const bytes = Buffer.from(secret);
  if (bytes.length < 16) throw new TypeError('a secret of so few bytes would be found anywhere');
  const forms = [
    bytes.toString('hex'),
    bytes.toString('base64').replace(/=+$/, ''),
    bytes.toString('base64url'),
  ];
  return typeof secret === 'string' ? [secret, ...forms] : forms;
}

/** The bytes of a `whsec_…` secret. */
export function webhookSecretBytes(secret: string): Buffer {
  return Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
}
