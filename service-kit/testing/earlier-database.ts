/** A database as an earlier version of a program left it, for tests of what an upgrade does with its rows. */
import { cp, mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { applyMigrations, createPool } from '#service-kit/postgres/database.ts';
import { createTestDatabase } from './index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

export type EarlierDatabase = Awaited<ReturnType<typeof createEarlierDatabase>>;

/** Migrations whose number is below `before` (such as `0200`), of the program and of the kit. */
export async function createEarlierDatabase(program: string, before: string, kitBefore = before) {
  const server = await createTestDatabase('service-kit');
  const name = `${new URL(server.url.replace(/^.*?\/(svc_test[^?]*)/, 'http://x/$1')).pathname.slice(1)}_old`;
  await server.pool.query(`create database ${name} template template0`);
  const url = server.url.replace(/svc_test[^?]*/, name);
  const folder = await mkdtemp(join(tmpdir(), 'svc-earlier-'));
  const folders = ['service-kit', program];
  const isEarlier = (folder: string, file: string) => file < (folder === 'service-kit' ? kitBefore : before);
  const apply = async (paths: string[]) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await applyMigrations(client, paths).finally(() => client.end());
  };
  for (const one of folders) {
    const from = join(root, one, 'migrations');
    const to = join(folder, one, 'migrations');
    await mkdir(to, { recursive: true });
    for (const file of await readdir(from))
      if (isEarlier(one, file)) await cp(join(from, file), join(to, file));
  }
  await apply(folders.map((one) => join(folder, one, 'migrations')));
  await rm(folder, { recursive: true });
  const { pool, db } = createPool(url, 4);
  return {
    url,
    pool,
    db,
    /** Applies the migrations that are missing. */
    upgrade: () => apply(folders.map((one) => join(root, one, 'migrations'))),
    async [Symbol.asyncDispose]() {
      await db.destroy();
      await server.pool.query(`drop database ${name} with (force)`);
      await server.drop();
    },
  };
}
