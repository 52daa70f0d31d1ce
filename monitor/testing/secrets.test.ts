/** The monitor's secrets at rest: in no row and no log line, bound to their place, and sealed after an upgrade. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret, TOTP } from 'otpauth';
import { hasCode } from '#common/errors/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { startOperationsStub } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';
import { createEarlierDatabase } from '#service-kit/testing/earlier-database.ts';
import { findInRows, webhookSecretBytes } from '#service-kit/testing/find-in-rows.ts';
import { startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';
import { startMonitorServer } from './server.ts';

/** The part after kind and id; it may contain underscores. */
const secretOf = (token: string) => token.split('_').slice(2).join('_');

test('after use of every feature with secrets, none is in a row of the monitor or in its log', async () => {
  const lines: string[] = [];
  const reporter = createReporter({ program: 'test', level: 'debug', write: (line) => lines.push(line) });
  await using operations = await startOperationsStub();
  await using receiver = await startReceiver();
  await using server = await startMonitorServer({ SVC_WEBHOOK_PRIVATE_TARGETS: '1' }, { reporter });
  const { monitor, database } = server;
  const operator = await server.signIn('operator');
  const connection = { baseUrl: operations.url, token: operations.token, isEnabled: true };
  await monitor.connection.testAndSave(systemActor, connection);
  await monitor.connection.check();
  const noticeSecret = await monitor.connection.createNoticeSecret(systemActor);
  const channel = { kind: 'webhook', name: 'Pager', settings: { url: `${receiver.url}/all/200` } };
  const { secret: webhookSecret } = await monitor.alerts.addChannel(systemActor, channel);
  receiver.learn(webhookSecret!);
  await monitor.alerts.sendTest(systemActor, (await monitor.alerts.listChannels())[0]!.id);
  await monitor.alerts.sender.drain();
  assert.equal(receiver.received.length, 1, 'signed with the secret that was shown');
  const { token: enrolment } = await monitor.sensors.createToken(systemActor, server.siteId);
  const facts = { token: enrolment, host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
  const { credential } = (await monitor.sensors.enrol(facts))!;
  const page = (await operator.post('/account/app/new')).text;
  const appSecret = /<code>((?:[A-Z2-7]{4} ?)+)<\/code>/.exec(page)![1]!.replaceAll(' ', '');
  const code = new TOTP({ secret: Secret.fromBase32(appSecret) }).generate();
  const confirmed = (await operator.post('/account/app/confirm', { code })).text;
  const recovery = /\b(?:[a-z2-9]{6}-){3}[a-z2-9]{6}\b/.exec(confirmed)![0];

  const secrets = {
    'the admin token': operations.token,
    'the notice secret': noticeSecret,
    'the secret of a webhook': webhookSecretBytes(webhookSecret!),
    'an enrolment token': enrolment.replace(/^svcenr_/, ''),
    'a credential': secretOf(credential),
    'the secret of an app': appSecret,
    'a recovery code': recovery,
    'a session': operator.cookie.split('=')[1]!.split('.').at(-1)!,
  };
  assert.deepEqual(await findInRows(database.pool, secrets), []);
  for (const [name, value] of Object.entries(secrets))
    if (typeof value === 'string') assert.ok(!lines.join('\n').includes(value), `${name} in the log`);
  // Each of them is found when it is planted.
  for (const [name, value] of Object.entries(secrets)) {
    await database.pool.query('update notice_secret set clear_secret = $1, sealed_secret = null', [
      Buffer.from(value),
    ]);
    assert.deepEqual(await findInRows(database.pool, { [name]: value }), [`${name} in notice_secret`]);
  }
});

test('a token or secret that was moved or changed is not used; setting it again repairs it', async () => {
  await using operations = await startOperationsStub();
  await using receiver = await startReceiver();
  await using server = await startMonitorServer({ SVC_WEBHOOK_PRIVATE_TARGETS: '1' });
  const { monitor, database } = server;
  const connection = { baseUrl: operations.url, token: operations.token, isEnabled: true };
  await monitor.connection.save(systemActor, connection);
  const secret = await monitor.connection.createNoticeSecret(systemActor);
  for (const name of ['one', 'two']) {
    const settings = { url: `${receiver.url}/${name}/200` };
    const made = await monitor.alerts.addChannel(systemActor, { kind: 'webhook', name, settings });
    receiver.learn(made.secret!);
  }
  const refused = (error: unknown) => hasCode(error, 'secrets.refused');
  await database.pool.query(
    'update notice_secret set sealed_secret = (select sealed_token from operations_connection)',
  );
  await assert.rejects(monitor.connection.readNoticeSecret(), refused);
  await database.pool.query('update operations_connection set sealed_token = set_byte(sealed_token, 20, 0)');
  await assert.rejects(monitor.connection.open(), refused);
  await monitor.connection.setNoticeSecret(systemActor, secret);
  await monitor.connection.save(systemActor, connection);
  assert.equal(await monitor.connection.readNoticeSecret(), secret);
  assert.ok(await monitor.connection.open());
  // The channel with the exchanged secret fails with a reason; the other one delivers.
  const [one, two] = await monitor.alerts.listChannels();
  await database.pool.query(
    'update alert_channels c set sealed_secret = (select sealed_secret from alert_channels where id = $2) where id = $1',
    [one!.id, two!.id],
  );
  for (const { id } of [one!, two!]) await monitor.alerts.sendTest(systemActor, id);
  await monitor.alerts.sender.drain();
  assert.equal(receiver.received.length, 1);
  const listed = await monitor.alerts.listChannels();
  assert.match(listed[0]!.lastError!, /its secret can not be decrypted/);
  assert.equal(listed[1]!.lastError, null);
});

test('an earlier version’s readable secrets are sealed when the monitor starts, and still work', async () => {
  await using database = await createEarlierDatabase('monitor', '0200');
  const token = `svcadm_${'a'.repeat(16)}_${'B'.repeat(43)}`;
  const webhook = Buffer.alloc(32, 'w');
  const before = {
    token,
    'the notice secret': 'a notice secret of before',
    webhook,
    app: 'JBSWY3DPEHPK3PXP',
  };
  await database.pool.query(
    `insert into operations_connection (base_url, token, is_enabled, project_name) values ('http://127.0.0.1:9', $1, true, 'P')`,
    [token],
  );
  await database.pool.query('insert into notice_secret (secret) values ($1)', [before['the notice secret']]);
  await database.pool.query(
    `insert into alert_channels (kind, name, url, secret) values ('webhook', 'Pager', 'https://example.net/', $1)`,
    [webhook],
  );
  await database.pool.query(
    `insert into alert_channels (kind, name, recipients) values ('email', 'Night', '{a@example.net}')`,
  );
  await database.pool.query('insert into totp_secrets (person_id, sealed) values (7, $1)', [
    `plain:${before.app}`,
  ]);
  assert.equal((await findInRows(database.pool, before)).length, 4);
  await database.upgrade();
  const { db, pool } = database;
  const part = { name: 'database', start: async () => {}, stop: async () => {} };
  const config = readConfig({ SVC_LOG_LEVEL: 'error' });
  const open = () =>
    compose(config, { database: { ...part, db, pool, reader: db }, keyWrapper: testWrapper });
  const monitor = open();
  await monitor.secrets.part.start();
  assert.deepEqual(await findInRows(pool, before), []);
  const second = open();
  assert.equal(await second.connection.readNoticeSecret(), before['the notice secret']);
  assert.equal((await second.connection.view())?.projectName, 'P');
  // The same token is the same connection: its permissions stay.
  await second.connection.save(systemActor, { baseUrl: 'http://127.0.0.1:9', token, isEnabled: true });
  assert.equal((await second.connection.view())?.projectName, 'P');
  assert.deepEqual(
    (await second.alerts.listChannels()).map(({ name, settings }) => [name, settings]),
    [
      ['Night', { recipients: 'a@example.net' }],
      ['Pager', { url: 'https://example.net/' }],
    ],
    'channels keep where they tell',
  );
  const app = await second.factors.pendingTotp(7, 'a@example.net');
  assert.equal(app?.secret, before.app);
  await second.secrets.rotate({ kind: 'system' });
  assert.equal(await monitor.connection.readNoticeSecret(), before['the notice secret']);
});
