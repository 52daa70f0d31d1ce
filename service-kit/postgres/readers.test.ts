import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { createTestDatabase } from '#service-kit/testing/index.ts';

const script = readFileSync(new URL('../../packaging/postgres/readers.sql', import.meta.url), 'utf8');

for (const [program, readable, secrets] of [
  [
    'monitor',
    ['sensors (host_name)', 'sites (name)', 'events (kind)'],
    [
      'notice_secret (sealed_secret)',
      'operations_connection (sealed_token)',
      'operations_connection (clear_token)',
      'alert_channels (sealed_secret)',
      'totp_secrets (sealed_secret)',
      'data_keys (wrapped)',
      'operators (password_hash)',
      'sensor_credentials (digest)',
      'sessions (digest)',
      'sessions (csrf_token)',
      'inbox_uploads (body)',
    ],
  ],
  [
    'operations',
    ['servers (name)', 'usage_days (count)', 'ledger_entries (amount_quanta)'],
    [
      'server_orders (root_password)',
      'server_actions (root_password)',
      'api_keys (digest)',
      'admin_tokens (digest)',
      'people (password_hash)',
      'webhook_endpoints (sealed_secret)',
      'webhook_endpoints (sealed_previous_secret)',
      'data_keys (wrapped)',
      'servers (user_data)',
      'jobs (payload)',
      'invitations (digest)',
    ],
  ],
] as const) {
  test(`${program}: a reader reads facts, no secret, and changes nothing`, async (t) => {
    await using database = await createTestDatabase(program);
    const client = await database.pool.connect();
    t.after(() => client.release());
    const { rows } = await client.query<{ name: string }>("select current_database() || '_reader' as name");
    const reader = rows[0]!.name;
    await client.query(`create role ${reader}`);
    try {
      await client.query(script);
      await client.query(`set role ${reader}`);
      const read = (what: string) => {
        const [, table, column] = /^(\S+) \((\S+)\)$/.exec(what)!;
        return client.query(`select ${column} from ${table}`);
      };
      for (const what of secrets) await assert.rejects(read(what), /permission denied/, what);
      for (const what of readable) await read(what);
      const table = readable[0].split(' ')[0];
      await assert.rejects(client.query(`delete from ${table}`), /permission denied/);
    } finally {
      await client.query('reset role');
      await client.query(`drop owned by ${reader}; drop role ${reader}`);
    }
  });
}

test('NET-5.3: the monitor’s own reader finds a sensor by its credential’s digest, and can write nothing', async (t) => {
  await using database = await createTestDatabase('monitor');
  const client = await database.pool.connect();
  t.after(() => client.release());
  const { rows } = await client.query<{ name: string }>("select current_database() || '_reader' as name");
  const group = rows[0]!.name;
  const own = `svc_${group}`;
  await client.query(`create role ${group}; create role ${own} in role ${group}`);
  try {
    await client.query(script);
    await client.query(`set role ${own}`);
    await client.query(
      'select sensor_id, digest, expires_at, replaced_at from sensor_credentials where id = $1',
      ['x'],
    );
    await client.query('select name from schema_migrations');
    await client.query('select name, term, expires_at > svc_now() from leases');
    await client.query('select state, attempts, received_at, finished_at from inbox_uploads');
    await assert.rejects(client.query('update sensors set node = node'), /permission denied/);
    await assert.rejects(client.query('select body from inbox_uploads'), /permission denied/);
  } finally {
    await client.query('reset role');
    await client.query(`drop owned by ${own}; drop role ${own}; drop owned by ${group}; drop role ${group}`);
  }
});
