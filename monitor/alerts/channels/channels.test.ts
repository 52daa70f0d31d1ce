import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import { hasCode } from '#common/errors/index.ts';
import { createReporter, silentReporter } from '#common/reporter/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createProbes } from '#monitor/probes/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import type { StillClock } from '#monitor/testing/still-clock.ts';
import { type MailServer, startMailServer } from '#service-kit/mail/testing/start-mail-server.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';
import { createSystem } from '#service-kit/system/index.ts';
import type { Subject } from '../episode.ts';
import { type Alerts, alertSecrets, type ChannelInput, createAlerts } from '../index.ts';
import { enqueueOpened, enqueueResolved } from '../outbox-store.ts';
import { insertEpisode, resolveEpisode } from '../store.ts';
import { hasPrograms, startAlertmanager, startRsyslog } from './testing/programs.ts';
import { keys, type Seen } from './testing/services.ts';

let world: MonitorWorld;
let alerts: Alerts;
let mailServer: MailServer;
let services: { url: string; seen: Seen[]; end(): Promise<unknown> };
let clock: StillClock;
const nowMs = Date.parse('2026-06-10T10:00:05Z');
const log: string[] = [];

async function startServices() {
  const file = fileURLToPath(new URL('./testing/services.ts', import.meta.url));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [first] = (await once(lines, 'line')) as [string];
  const seen: Seen[] = [];
  lines.on('line', (line) => seen.push(JSON.parse(line) as Seen));
  const end = () => {
    child.kill();
    return once(child, 'exit');
  };
  return { url: `http://127.0.0.1:${(JSON.parse(first) as { port: number }).port}`, seen, end };
}

before(async () => {
  [world, services, mailServer] = await Promise.all([
    createMonitorWorld({ standsAtMs: nowMs }),
    startServices(),
    startMailServer(),
  ]);
  clock = world.standing!;
  const db = () => world.database.db;
  alerts = createAlerts({
    ...{ db, clock: systemClock, sensors: world.sensors, traffic: world.traffic, scans: world.scans },
    ...{ vulnerabilities: world.vulnerabilities, inbox: world.inbox, feeds: { all: [] } },
    secrets: createTestSecrets({ db, program: 'monitor', columns: alertSecrets }),
    reporter: createReporter({ program: 'monitor', write: (line) => log.push(line) }),
    probes: createProbes({ db, reader: db }),
    system: createSystem({ db, clock: systemClock, reporter: silentReporter, folder: '/' }),
    handOff: { listFailing: async () => [] },
    post: { send: async () => null },
    rules: { allowPrivate: true },
    mail: { url: mailServer.url, from: 'Monitor <monitor@example.net>' },
    consoleUrl: 'https://monitor.example.net',
  });
});
after(() => Promise.all([world[Symbol.asyncDispose](), services.end(), mailServer[Symbol.asyncDispose]()]));

/** A subject of a kind that no judging ends. */
const subject = (
  kind: 'attack_detected' | 'findings_new',
  name: string,
  siteId: number | null = world.siteId,
) => ({
  ...{ kind, key: `${kind}:${name}`, siteId, name, verdict: 'bad' as const },
  details:
    kind === 'attack_detected'
      ? { title: 'UDP flood', peak_pps: 120_000, peak_bps: 960_000_000, drill: false }
      : {
          found: 2,
          first: 'CVE-2026-1000 at tcp/443 (nginx 1.2)',
          severity: 'critical',
          critical: 1,
          high: 1,
          others: 0,
        },
});
const change = <T>(work: (trx: Queryable) => Promise<T>) => world.database.db.transaction().execute(work);
async function open(what: Subject): Promise<number> {
  return change(async (trx) => {
    const id = (await insertEpisode(trx, what))!;
    await enqueueOpened(trx, id);
    return id;
  });
}
const resolve = (id: number) =>
  change(async (trx) => {
    await resolveEpisode(trx, id, 'recovered');
    await enqueueResolved(trx, id);
  });
const deliver = () => alerts.sender.drain();
/** What the services showed since the last call, each with its service. */
const shown = () => services.seen.splice(0).map(({ service, shows }) => `${service}: ${shows}`);
const idOf = async (name: string) => (await alerts.listChannels()).find((one) => one.name === name)!.id;
async function removeAll(): Promise<void> {
  for (const { id } of await alerts.listChannels()) await alerts.deleteChannel(systemActor, id);
}

const settingsOf = (): Record<string, Record<string, string>> => ({
  slack: { token: keys.slack, channel: 'C0123456789', server: `${services.url}/slack/` },
  teams: { url: `${services.url}/teams/workflows/1/invoke?sig=${keys.teams}` },
  discord: { url: `${services.url}/discord/api/webhooks/42/${keys.discord}` },
  telegram: { token: keys.telegram, chat: '-1001234567890', server: `${services.url}/telegram` },
  ntfy: { topic: 'svc-alerts', token: keys.ntfy, server: `${services.url}/ntfy` },
  pagerduty: { key: keys.pagerduty, server: `${services.url}/pagerduty` },
  opsgenie: { key: keys.opsgenie, server: `${services.url}/opsgenie` },
});

test('an alert is sent in the format of each service, and its end to the same thread, incident or message', async () => {
  for (const [kind, settings] of Object.entries(settingsOf()))
    await alerts.addChannel(systemActor, { kind, name: kind, settings });
  const id = await open(subject('attack_detected', '192.0.2.7 <b>&*x*'));
  await deliver();
  const facts = 'Site: Test site\nOpened: 2026-06-10 10:00:05 UTC';
  const summary = 'Attack: 192.0.2.7 <b>&*x*: UDP flood: up to 120,000 packets/s, 960 Mbit/s';
  assert.deepEqual(shown().sort(), [
    `discord: #d92d20 ${summary}\n${facts}`,
    `ntfy: 5 rotating_light ${summary}\n${facts}`,
    `opsgenie: P1 ${summary}`,
    `pagerduty: critical ${summary}`,
    `slack: *${summary.replace('<b>&', '&lt;b&gt;&amp;')}*\n${facts}\n<https://monitor.example.net/alerts|Open the alert>`,
    `teams: Attention ${summary}\n${facts}`,
    `telegram: ${summary}\n${facts}\nhttps://monitor.example.net/alerts`,
  ]);
  await clock.set(nowMs + 90_000);
  await resolve(id);
  await deliver();
  const ended = `${facts}\nResolved: 2026-06-10 10:01:35 UTC\nThe alert was: UDP flood: up to 120,000 packets/s, 960 Mbit/s`;
  const over = 'Resolved: Attack: 192.0.2.7 <b>&*x*';
  const safe = (text: string) => text.replace('<b>&', '&lt;b&gt;&amp;');
  assert.deepEqual(shown().sort(), [
    `discord: #079455 ${over}\n${ended}`,
    `discord: edited to #079455 ${over}\n${ended}`,
    `ntfy: in place of [${summary}] 3 white_check_mark ${over}\n${ended}`,
    'opsgenie: closed',
    'pagerduty: resolved',
    `slack: in the thread of [*${safe(summary)}*] *${safe(over)}*\n${ended}\n<https://monitor.example.net/alerts|Open the alert>`,
    `teams: Good ${over}\n${ended}`,
    `telegram: in reply to [${summary}] ${over}\n${ended}\nhttps://monitor.example.net/alerts`,
  ]);
  for (const { id: channelId } of await alerts.listChannels()) await alerts.sendTest(systemActor, channelId);
  await deliver();
  const tested = shown().sort();
  assert.equal(tested.filter((line) => line.includes('Nothing is wrong.')).length, 7);
  assert.deepEqual(
    tested.filter((line) => /resolved|closed/.test(line)),
    ['opsgenie: closed', 'pagerduty: resolved'],
    'a test leaves no incident open',
  );
});

test('a refusal by a service is shown in our words, and no secret is in a log, a page or the audit trail', async () => {
  const wrong: Record<string, [Record<string, string>, string]> = {
    slack: [{ channel: 'C0000000000' }, 'Slack answered channel_not_found'],
    telegram: [{ token: '987654321:AAbbCCddEEffGGhhIIjjKKllMMnnOOpp' }, 'the receiver answered 401'],
    discord: [{ url: `${services.url}/discord/api/webhooks/42/another-key` }, 'the receiver answered 401'],
    teams: [{ url: `${services.url}/teams/workflows/1/invoke` }, 'the receiver answered 401'],
    ntfy: [{ token: '' }, 'the receiver answered 401'],
    pagerduty: [{ key: 'f'.repeat(32) }, 'the receiver answered 400'],
    opsgenie: [{ key: 'eb243592-0000-0000-0000-1afdf565c889' }, 'the receiver answered 401'],
  };
  await removeAll();
  for (const [kind, [change]] of Object.entries(wrong)) {
    await alerts.addChannel(systemActor, {
      kind,
      name: kind,
      settings: { ...settingsOf()[kind], ...change },
    });
    await alerts.sendTest(systemActor, await idOf(kind));
  }
  await deliver();
  const channels = await alerts.listChannels();
  assert.deepEqual(
    Object.fromEntries(channels.map(({ kind, lastError }) => [kind, lastError])),
    Object.fromEntries(Object.entries(wrong).map(([kind, [, error]]) => [kind, error])),
  );
  shown();
  const audit = await world.rows('select * from audit_entries');
  const said = JSON.stringify([log, channels, audit]);
  for (const settings of Object.values(settingsOf()))
    for (const key of ['token', 'key'])
      if (settings[key]) assert.ok(!said.includes(settings[key]), settings[key]);
  assert.ok(!said.includes(keys.discord) && !said.includes(keys.teams));
});

test('a channel receives alerts of its sites, kinds and severity only; what concerns all sites goes to each', async () => {
  await removeAll();
  const other = await world.sites.create(systemActor, 'Other site');
  const telegram = settingsOf().telegram!;
  const add = (name: string, rest: Partial<ChannelInput>) =>
    alerts.addChannel(systemActor, {
      ...{ kind: 'telegram', name, settings: { ...telegram, chat: `@${name}_chat` } },
      ...rest,
    });
  await add('first_site', { siteIds: [world.siteId] });
  await add('second_site', { siteIds: [other.id] });
  await add('findings', { kinds: ['findings_new'] });
  await add('critical', { isCriticalOnly: true });
  const told = async (what: Subject) => {
    const id = await open(what);
    const rows = await world.rows<{ name: string }>(
      `select c.name from alert_notifications n join alert_channels c on c.id = n.channel_id where n.episode_id = ${id}`,
    );
    return rows.map(({ name }) => name).sort();
  };
  assert.deepEqual(await told(subject('attack_detected', 'a')), ['critical', 'first_site']);
  assert.deepEqual(await told(subject('attack_detected', 'b', other.id)), ['critical', 'second_site']);
  assert.deepEqual(await told(subject('findings_new', 'c', other.id)), ['findings', 'second_site']);
  assert.deepEqual(await told(subject('findings_new', 'd', null)), ['findings', 'first_site', 'second_site']);
  await deliver();
  shown();
});

test('quiet hours let critical alerts through; others wait until the end, and are dropped if they are over by then', async () => {
  await removeAll();
  const quiet = { quietFrom: '22:00', quietTo: '07:00', quietZone: 'Europe/Berlin' };
  await alerts.addChannel(systemActor, {
    kind: 'teams',
    name: 'Night',
    settings: settingsOf().teams!,
    ...quiet,
  });
  const titles = async () => {
    await deliver();
    return shown().map((line) => /(Resolved: )?(Attack|Potential vulnerabilities): \w+/.exec(line)![0]);
  };
  // 23:30 in Berlin, in summer.
  await clock.set(Date.parse('2026-06-10T21:30:00Z'));
  const long = await open(subject('findings_new', 'long'));
  const short = await open(subject('findings_new', 'short'));
  const attack = await open(subject('attack_detected', 'attack'));
  assert.deepEqual(await titles(), ['Attack: attack'], 'what waits does not hold back what follows');
  await resolve(short);
  await resolve(attack);
  assert.deepEqual(await titles(), ['Resolved: Attack: attack']);
  await clock.set(Date.parse('2026-06-11T04:59:59Z'));
  assert.deepEqual(await titles(), []);
  await clock.set(Date.parse('2026-06-11T05:00:00Z'));
  assert.deepEqual(await titles(), ['Potential vulnerabilities: long']);
  await resolve(long);
  assert.deepEqual(await titles(), ['Resolved: Potential vulnerabilities: long']);
  // In winter they begin an hour later by UTC, and the end of a day is not the end of the quiet hours.
  await clock.set(Date.parse('2026-12-10T21:30:00Z'));
  await open(subject('findings_new', 'winter'));
  await clock.set(Date.parse('2026-12-11T05:59:59Z'));
  assert.deepEqual(await titles(), []);
  await clock.set(Date.parse('2026-12-11T06:00:00Z'));
  assert.deepEqual(await titles(), ['Potential vulnerabilities: winter']);
  await open(subject('findings_new', 'day'));
  assert.deepEqual(await titles(), ['Potential vulnerabilities: day']);
});

test('a mail that says that an alert is over answers the mail that opened it', async () => {
  await removeAll();
  await alerts.addChannel(systemActor, {
    ...{ kind: 'email', name: 'Night', settings: { recipients: 'thread@example.net' } },
  });
  const id = await open(subject('attack_detected', 'mailed'));
  await deliver();
  await resolve(id);
  await deliver();
  const [opened, resolved] = await mailServer.mailsTo('thread@example.net');
  assert.match(opened!.id, /^<[0-9a-f-]{36}@example\.net>$/);
  assert.deepEqual(opened!.answers, []);
  assert.deepEqual(resolved!.answers, [opened!.id, opened!.id]);
});

test('a channel is changed without typing its secret again, and fields of a wrong shape say what to type', async () => {
  await removeAll();
  const settings = settingsOf().slack!;
  await alerts.addChannel(systemActor, { kind: 'slack', name: 'Chat', settings });
  const id = await idOf('Chat');
  const change = { name: 'Renamed', settings: { ...settings, token: '' }, isCriticalOnly: true };
  assert.equal(await alerts.changeChannel(systemActor, id, change), true);
  assert.equal(await alerts.changeChannel(systemActor, 999_999, change), false);
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  await assert.rejects(alerts.changeChannel(viewer, id, change), (error) =>
    hasCode(error, 'operators.read_only'),
  );
  const { name, isCriticalOnly } = (await alerts.listChannels())[0]!;
  assert.deepEqual([name, isCriticalOnly], ['Renamed', true]);
  await alerts.sendTest(systemActor, id);
  await deliver();
  assert.match(shown().join('\n'), /^slack: \*This is a test/, 'the token is still there');

  const refusals: [string, Record<string, string>, Partial<ChannelInput>, RegExp][] = [
    ['slack', { ...settings, token: '' }, {}, /Fill in: Bot token/],
    ['slack', { ...settings, token: 'hunter2' }, {}, /begins with xoxb-/],
    ['slack', { ...settings, channel: '#ops' }, {}, /such as C0123456789/],
    ['telegram', { token: keys.telegram, chat: 'ops' }, {}, /@ and the name/],
    ['discord', { url: 'https://discord.com/channels/1/2' }, {}, /ends with \/webhooks\//],
    ['ntfy', { topic: 'a b' }, {}, /letters, digits/],
    ['syslog', { host: 'logs.example.net', port: '70000' }, {}, /1 to 65535/],
    ['syslog', { host: 'logs.example.net', authority: 'x' }, {}, /paste it as PEM/],
    ['carrier-pigeon', {}, {}, /Choose a kind/],
    ['slack', settings, { kinds: ['nothing'] }, /from the list/],
    ['slack', settings, { quietFrom: '22:00' }, /both times/],
    ['slack', settings, { quietFrom: '22:00', quietTo: '22:00', quietZone: 'UTC' }, /different times/],
    [
      'slack',
      settings,
      { quietFrom: '22:00', quietTo: '07:00', quietZone: 'Berlin' },
      /such as Europe\/Berlin/,
    ],
  ];
  for (const [kind, typed, rest, message] of refusals)
    await assert.rejects(
      alerts.addChannel(systemActor, { kind, name: 'x', settings: typed, ...rest }),
      (error: Error) => hasCode(error, 'alerts.invalid') && message.test(error.message),
      `${kind} ${message}`,
    );
  assert.equal((await alerts.listChannels()).length, 1);
});

const skip = hasPrograms ? false : 'needs prometheus-alertmanager, rsyslog and rsyslog-gnutls';

test('Alertmanager has an alert while it is open, repeated every five minutes, and not after its end', {
  skip,
}, async () => {
  await using alertmanager = await startAlertmanager();
  await removeAll();
  await alerts.addChannel(systemActor, {
    ...{ kind: 'alertmanager', name: 'Alertmanager', settings: { server: `${alertmanager.url}/` } },
    kinds: ['attack_detected'],
  });
  const startMs = await alertmanager.nowMs();
  await clock.set(startMs);
  const id = await open(subject('attack_detected', '192.0.2.9'));
  await deliver();
  const [active] = await alertmanager.active();
  assert.deepEqual(active?.labels, {
    ...{ alertname: 'attack_detected', severity: 'critical', subject: '192.0.2.9', site: 'Test site' },
    job: 'svc-monitor',
  });
  assert.equal(
    active?.annotations.summary,
    'Attack: 192.0.2.9: UDP flood: up to 120,000 packets/s, 960 Mbit/s',
  );
  assert.equal(Date.parse(active!.endsAt), startMs + 900_000);
  const repeatAt = async (ms: number) => {
    await clock.set(ms);
    await alerts.loop.runOnce();
    await deliver();
    return Date.parse((await alertmanager.active())[0]!.endsAt);
  };
  assert.equal(await repeatAt(startMs + 299_000), startMs + 900_000);
  assert.equal(await repeatAt(startMs + 300_000), startMs + 1_200_000);
  await clock.set(startMs);
  await resolve(id);
  await deliver();
  assert.deepEqual(await alertmanager.active(), []);
  await alerts.loop.runOnce();
  await clock.set(startMs + 600_000);
  await deliver();
  assert.deepEqual(await alertmanager.active(), [], 'what is over is not repeated');
});

test('rsyslog takes a line over TLS for each change, and a certificate of another authority gets none', {
  skip,
}, async () => {
  await using rsyslog = await startRsyslog();
  await removeAll();
  const settings = { host: 'localhost', port: String(rsyslog.port), authority: rsyslog.certificate };
  await alerts.addChannel(systemActor, { kind: 'syslog', name: 'Logs', settings });
  await clock.set(nowMs);
  const id = await open(subject('attack_detected', 'a "quoted" name'));
  const [opened] = await Promise.all([rsyslog.next(), deliver()]);
  const [{ publicId }] = (await world.rows<{ publicId: string }>(
    `select public_id as "publicId" from alert_notifications where episode_id = ${id}`,
  )) as [{ publicId: string }];
  const about = `alert=${publicId} subject="a \\"quoted\\" name" site="Test site"`;
  const flood = 'Attack: a "quoted" name: UDP flood: up to 120,000 packets/s, 960 Mbit/s';
  assert.equal(
    opened.replace('\u{feff}', ''),
    `26 svc-monitor attack_detected ${flood} transition=opened severity=critical ${about}`,
  );
  await resolve(id);
  const [ended] = await Promise.all([rsyslog.next(), deliver()]);
  assert.match(
    ended,
    /^29 svc-monitor attack_detected .?Resolved: Attack: a "quoted" name transition=resolved/u,
  );

  await alerts.changeChannel(systemActor, await idOf('Logs'), {
    name: 'Logs',
    settings: { ...settings, authority: '' },
  });
  await alerts.sendTest(systemActor, await idOf('Logs'));
  await deliver();
  assert.match((await alerts.listChannels())[0]!.lastError!, /certificate/);
});
