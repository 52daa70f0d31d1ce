/** Looks for secrets in every row of every table: as text, and in the hexadecimal that binary columns are shown in. */
import type pg from 'pg';

/** Where one of the secrets stands, as `NAME in TABLE`. A secret is a text, or the bytes that are kept of it. */
export async function findInRows(
  pool: pg.Pool,
  secrets: Readonly<Record<string, string | Buffer>>,
): Promise<string[]> {
  const found: string[] = [];
  const { rows: tables } = await pool.query<{ name: string }>(
    `select quote_ident(table_name) as name from information_schema.tables
     where table_schema = 'public' and table_type = 'BASE TABLE'`,
  );
  for (const { name } of tables) {
    const { rows } = await pool.query<{ text: string | null }>(
      `select string_agg(t::text, E'\\n') as text from ${name} t`,
    );
    const text = rows[0]?.text ?? '';
    for (const [secret, value] of Object.entries(secrets))
      if (formsOf(value).some((form) => text.includes(form))) found.push(`${secret} in ${name}`);
  }
  return found;
}

function formsOf(secret: string | Buffer): string[] {
  const bytes = Buffer.from(secret);
  if (bytes.length < 8) throw new TypeError('a secret of so few bytes would be found anywhere');
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
