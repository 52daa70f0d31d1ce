import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { applyMigrations } from './database.ts';

const folder = fileURLToPath(new URL('../migrations', import.meta.url));

test('a program refuses a database that a newer version has brought further, and changes nothing in it', async () => {
  await using database = await createTestDatabase('service-kit');
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  try {
    assert.deepEqual(await applyMigrations(client, [folder]), []);
    const note = (name: string) =>
      client.query("insert into schema_migrations (name, checksum) values ($1, 'x')", [name]);
    await note('another-program/9999-add-a-table.sql');
    await client.query("delete from schema_migrations where name like 'service-kit/0001%'");
    await note('service-kit/9998-add-a-table.sql');
    await assert.rejects(
      applyMigrations(client, [folder]),
      /newer version of svc \(service-kit\/9998-add-a-table\.sql\) than this program \(service-kit\/0\d+-.*restore a backup/,
    );
  } finally {
    await client.end();
  }
});
