/**
 * Plain SQL migrations, `NNNN-verb-noun.sql`, each applied once in a transaction of its own, in the order of their names.
 *
 * Applied files never change: their checksum is kept and compared. Two programs that start at once are safe: an
 * advisory lock lets one of them do it.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type pg from 'pg';
import { CodedError } from '#common/errors/index.ts';

const lockKey = 7_318_001;

interface Migration {
  name: string;
  text: string;
  checksum: string;
}

/** Reads the folders' migrations in order; a folder's name is part of a migration's name. */
export async function readMigrations(folders: readonly string[]): Promise<Migration[]> {
  const migrations: Migration[] = [];
  for (const folder of folders) {
    const files = (await readdir(folder)).filter((file) => file.endsWith('.sql')).sort();
    for (const file of files) {
      const text = await readFile(join(folder, file), 'utf8');
      const owner = basename(join(folder, '..'));
      migrations.push({
        name: `${owner}/${file}`,
        text,
        checksum: createHash('sha256').update(text).digest('hex'),
      });
    }
  }
  return migrations;
}

/**
 * Applies what is missing; returns the names applied. Throws `migrations.changed` when an applied file was edited, and
 * `migrations.newer` when a newer version of the program has brought the database further.
 */
export async function applyMigrations(client: pg.ClientBase, folders: readonly string[]): Promise<string[]> {
  const migrations = await readMigrations(folders);
  await client.query('select pg_advisory_lock($1)', [lockKey]);
  try {
    await client.query(`create table if not exists schema_migrations (
      name text primary key, checksum text not null, applied_at timestamptz not null default now())`);
    const { rows } = await client.query<{ name: string; checksum: string }>(
      'select name, checksum from schema_migrations',
    );
    const applied = new Map(rows.map((row) => [row.name, row.checksum]));
    refuseNewer(migrations, [...applied.keys()]);
    const names: string[] = [];
    for (const migration of migrations) {
      const before = applied.get(migration.name);
      if (before !== undefined && before !== migration.checksum) {
        throw new CodedError(
          'migrations.changed',
          `Migration ${migration.name} was changed after it had been applied. Restore the file, and put the change into a new one.`,
        );
      }
      if (before === undefined) {
        await applyOne(client, migration);
        names.push(migration.name);
      }
    }
    return names;
  } finally {
    await client.query('select pg_advisory_unlock($1)', [lockKey]);
  }
}

/** A program that does not know the tables would write into them what the newer one can't read. */
function refuseNewer(migrations: readonly Migration[], applied: readonly string[]): void {
  const ownerOf = (name: string) => name.slice(0, name.indexOf('/'));
  const known = new Set(migrations.map(({ name }) => name));
  const owners = new Set([...known].map(ownerOf));
  const unknown = applied.filter((name) => owners.has(ownerOf(name)) && !known.has(name)).sort();
  if (unknown.length === 0) return;
  const last = unknown.at(-1)!;
  const own = [...known].filter((name) => ownerOf(name) === ownerOf(last)).at(-1);
  throw new CodedError(
    'migrations.newer',
    `The database is of a newer version of svc (${last}) than this program (${own}). Start the newer version, or restore a backup from before the upgrade (docs/operating/upgrade.md).`,
  );
}

async function applyOne(client: pg.ClientBase, migration: Migration): Promise<void> {
  await client.query('begin');
  try {
    await client.query(migration.text);
    await client.query('insert into schema_migrations (name, checksum) values ($1, $2)', [
      migration.name,
      migration.checksum,
    ]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new CodedError(
      'migrations.failed',
      `Migration ${migration.name} failed: ${(error as Error).message}`,
      {},
      error,
    );
  }
}

/** Names of migrations that this program has and its database has not, in order. */
export async function findMissingMigrations(
  applied: readonly { name: string }[],
  folders: readonly string[],
): Promise<string[]> {
  const known = new Set(applied.map((row) => row.name));
  return (await readMigrations(folders)).map(({ name }) => name).filter((name) => !known.has(name));
}
