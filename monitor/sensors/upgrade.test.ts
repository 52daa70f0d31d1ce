import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mintCredential } from '#service-kit/credentials/index.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';
import { createSensors } from './index.ts';

test('sensors that were enrolled before credentials could rotate go on with theirs, also through a reader role', async () => {
  await using database = await createEarlierDatabase('monitor', '0220');
  const { pool, db } = database;
  const old = mintCredential('svcsen');
  const { rows } = await pool.query<{ name: string }>(
    "select 'svc_' || current_database() || '_reader' as name",
  );
  const reader = rows[0]!.name;
  await pool.query(`create role ${reader}`);
  try {
    await pool.query("insert into sites (name) values ('Site')");
    await pool.query(
      `grant select (id, site_id, host_name, node, revoked_at, credential_id, credential_digest) on sensors to ${reader}`,
    );
    await pool.query(
      `insert into sensors (site_id, host_name, node, credential_id, credential_digest, enrolled_at)
       select id, 'node-1', 'node-1', $1, $2, now() - interval '2 years' from sites`,
      [old.id, old.digest],
    );
    await database.upgrade();

    const sensors = createSensors({ db: () => db, reader: () => db, sections: [] });
    const found = await sensors.authenticate(old.token);
    assert.equal(found?.hostName, 'node-1');
    assert.deepEqual(found.credentialState, {
      id: old.id,
      expiresAtMs: null,
      isRotationDue: true,
      isNew: false,
    });
    const [listed] = await sensors.list(found.siteId);
    assert.equal(listed?.credentialExpiresAtMs, null);

    const client = await pool.connect();
    try {
      await client.query(`set role ${reader}`);
      const readable = await client.query(
        `select c.id, c.digest, c.expires_at, c.replaced_at, c.issued_at, c.first_used_at, s.rotation_requested_at, s.node
         from sensor_credentials c join sensors s on s.id = c.sensor_id where s.revoked_at is null`,
      );
      assert.equal(readable.rowCount, 1, 'authentication needs no script to be run again');
      await assert.rejects(
        client.query('update sensor_credentials set digest = digest'),
        /permission denied/,
      );
    } finally {
      await client.query('reset role');
      client.release();
    }
  } finally {
    await pool.query(`drop owned by ${reader}; drop role ${reader}`);
  }
});
