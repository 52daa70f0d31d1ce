/**
 * For every route of the monitor that can change data: one request, and its expected operation in the audit trail.
 * Routes without an entry are listed with the reason.
 */
import { Secret, TOTP } from 'otpauth';
import { systemActor } from '#monitor/operators/index.ts';
import { testPassword } from '#monitor/testing/server.ts';
import type { Case } from '#service-kit/audit/testing/audited-routes.ts';
import { peerFields, plantAnswer, plantPeer } from '#service-kit/sign-on/testing/plant-sign-on.ts';
import { type Answer, form, operatorEmail, type Stage } from './audit-stage.ts';
import { protectionCases } from './audited-protection.ts';

const codeOf = (secret: string) => new TOTP({ secret: Secret.fromBase32(secret) }).generate();

async function addApp({ monitor }: Stage, operatorId: number, email: string): Promise<void> {
  await monitor.factors.removeTotp(operatorId);
  const { secret } = (await monitor.factors.beginTotp(operatorId, email))!;
  await monitor.factors.confirmTotp(operatorId, codeOf(secret));
}

async function ask(url: string, options: RequestInit): Promise<Answer> {
  const answer = await fetch(url, { redirect: 'manual', ...options });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

/** Routes that need no entry, with the reason. */
export const exceptions: Readonly<Record<string, string>> = {
  'POST /agent/v1/telemetry': 'measurements, many a minute; each is stored with its sensor',
  'POST /api/v1/query': 'reads traffic, and changes nothing',
  'POST /agent/v1/live': 'measurements, every few seconds',
  'POST /agent/v1/incidents':
    'what a sensor observed of attacks; each incident keeps its sensor and its events',
  'POST /agent/v1/evidence/:incidentId': 'packets of an attack; each file keeps its sensor and its times',
  'POST /agent/v1/port-scans': 'what became of scans; each keeps its sensor and its times',
  'POST /integrations/operations/vm-destroyed':
    'signed by operations, which has recorded who destroyed the server; the monitor keeps an event',
  'POST /reset-password': 'mails a link after the answer; operator.set_password_by_link says when it is used',
  'POST /sign-in/passkey/options': 'makes a challenge of five minutes; signing it is session.start',
  'POST /account/oidc/link': 'oidc.link, by a provider: operations/surfaces/public/oidc.test.ts',
  'POST /account/oidc/unlink':
    'oidc.unlink, of what a provider made: operations/surfaces/public/oidc.test.ts',
  'POST /sign-in/passkey': 'session.start, by an authenticator: operations/surfaces/passkeys.test.ts',
  'POST /sign-on/answer':
    'keeps a signed assertion for minutes; session.start or sign_on.link_account says what it was used for',
  'POST /account/app/new': 'makes a secret that is not in use before second_factor.add_app',
  'POST /account/passkeys/new': 'makes a challenge of five minutes',
  'POST /account/passkeys':
    'second_factor.add_passkey, by an authenticator: operations/surfaces/passkeys.test.ts',
  'POST /account/passkeys/remove': 'second_factor.remove_passkey, of what an authenticator made',
  'POST /operations/test': 'asks operations what the project may do, and changes no setting',
};

function rotate({ server }: Stage, credential: string): Promise<Answer> {
  return ask(`${server.url}/agent/v1/credential`, {
    method: 'POST',
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    body: '{}',
  });
}

async function useRotated(stage: Stage): Promise<void> {
  const { server, monitor, sensor } = stage;
  const answer = await rotate(stage, (await sensor()).credential);
  const { credential } = JSON.parse(answer.text) as { credential: string };
  await ask(`${server.url}/agent/v1/plan`, { headers: { authorization: `Bearer ${credential}` } });
  await monitor.sensors.settled();
}

/** Changes without a route. */
export const otherCases: Readonly<
  Record<string, readonly [operation: string, change: (stage: Stage) => Promise<unknown>]>
> = {
  'command create-operator': ['operator.add', ({ colleague }) => colleague()],
  'the first use of a rotated credential': ['sensor.replace_credential', useRotated],
  'an enrolment for a node that has a sensor': ['sensor.replace', replaceSensor],
};

async function replaceSensor({ monitor, siteId, sensor }: Stage): Promise<void> {
  const { hostName } = await sensor();
  const place = { node: { name: hostName, clusterId: null }, replaces: true };
  const { token } = await monitor.sensors.createToken(systemActor, siteId, place);
  const request = { token, host_name: `new-${hostName}`, node: hostName, sensor_version: '0.1.0' };
  await monitor.sensors.enrol(request);
}

/** A person who is not linked, at a peer that is set up. */
async function plantPerson({ monitor, colleague }: Stage) {
  await plantPeer(monitor.signOn, systemActor);
  return { subject: 900, person: (await colleague()).id };
}

const site = 'POST /sites/:siteId';
const onSensor = async ({ sensor }: Stage) => ({ ':sensorId': (await sensor()).id });
const onColleague = async ({ colleague }: Stage) => ({ ':operatorId': (await colleague()).id });
const connection = ({ stub }: Stage) => ({ base_url: stub.url, token: stub.token, is_enabled: 'on' });

const consoleCases = Object.fromEntries([
  form('POST /sites', 'site.create', ({ next }) => ({ name: `site ${next()}` })),
  form(`${site}/explore/views`, 'saved_view.save', ({ next }) => ({
    name: `view ${next()}`,
    query: 'by=server',
  })),
  form(`${site}/explore/views/:viewId/remove`, 'saved_view.remove', async ({ siteId, monitor, next }) => {
    const view = await monitor.savedViews.save(systemActor, siteId, { name: `view ${next()}`, query: '' });
    return { ':viewId': view.id };
  }),
  form(`${site}/read-tokens`, 'read_token.create', ({ next }) => ({ name: `program ${next()}`, days: 30 })),
  form(`${site}/read-tokens/:tokenId/revoke`, 'read_token.revoke', async ({ siteId, monitor }) => {
    const { token } = await monitor.readTokens.create(systemActor, siteId, { name: 'program', days: '' });
    return { ':tokenId': token.split('_')[1] };
  }),
  form(`${site}/settings/full-scan`, 'site.set_full_scan_time', { time: '03:30', zone: 'Europe/Berlin' }),
  form(`${site}/settings/name`, 'site.rename', ({ next }) => ({ name: `renamed ${next()}` })),
  form(`${site}/settings/local-cidrs`, 'site.set_local_cidrs', ({ next }) => ({
    local_cidrs: `10.${next()}.0.0/16`,
  })),
  form(`${site}/settings/enrolment-tokens`, 'site.issue_enrolment', { node_name: 'node-1' }),
  form(`${site}/devices/:deviceId/name`, 'device.name', async ({ device }) => ({
    ':deviceId': await device(),
    name: 'printer',
  })),
  form(`${site}/availability`, 'probe.add', ({ next }) => ({
    ...{ name: `probe ${next()}`, kind: 'icmp', target: '192.0.2.1', interval: 10, timeout: 1000 },
  })),
  form(`${site}/availability/:probeId`, 'probe.change', async ({ probe }) => {
    const { id, name } = await probe();
    return { ':probeId': id, name, interval: 20, timeout: 1000 };
  }),
  form(`${site}/availability/:probeId/delete`, 'probe.remove', async ({ probe }) => {
    const { id, name } = await probe();
    return { ':probeId': id, confirm_name: name };
  }),
  form(`${site}/sensors/:sensorId/revoke`, 'sensor.revoke', async ({ sensor }) => {
    const { id, hostName } = await sensor();
    return { ':sensorId': id, confirm_name: hostName };
  }),
  form(`${site}/sensors/:sensorId/rotate`, 'sensor.request_rotation', onSensor),
  form(`${site}/sensors/:sensorId/node`, 'sensor.choose_node', async (stage) => ({
    ...(await onSensor(stage)),
    node_name: `node-${stage.next()}`,
  })),
  form('POST /alerts/:episodeId/acknowledge', 'alert.acknowledge', async ({ episode }) => ({
    ':episodeId': await episode(),
    note: 'looking',
  })),
  form('POST /alerts/:episodeId/mute', 'alert.mute', async ({ episode }) => ({
    ':episodeId': await episode(),
    hours: 0,
  })),
  form('POST /alerts/channels', 'channel.add', ({ next }) => ({
    ...{ kind: 'email', name: `added ${next()}`, setting_recipients: 'ops@example.org' },
  })),
  form('POST /alerts/channels/:channelId', 'channel.change', async ({ channel, next }) => ({
    ...{ ':channelId': await channel(), name: `changed ${next()}`, setting_recipients: 'night@example.org' },
  })),
  ...['test', 'enable', 'disable', 'delete'].map((verb) =>
    form(`POST /alerts/channels/:channelId/${verb}`, `channel.${verb}`, async ({ channel }) => ({
      ':channelId': await channel(),
    })),
  ),
  form('POST /operations/connection', 'connection.save', connection),
  form('POST /operations/connection/untested', 'connection.save', connection),
  form('POST /operations/import', 'inventory.import', async ({ connect }) => {
    await connect();
    return {};
  }),
  form('POST /operations/clusters', 'site.map_cluster', ({ siteId, next }) => ({
    cluster_id: next(),
    site_id: siteId,
  })),
  form('POST /operations/notice-secret', 'connection.set_notice_secret', { confirm_name: 'new secret' }),
  form('POST /settings/people', 'operator.create', ({ next }) => ({
    email: `invited-${next()}@example.org`,
    role: 'viewer',
  })),
  form('POST /settings/people/:operatorId', 'operator.change', async (stage) => ({
    ...(await onColleague(stage)),
    role: 'operator',
  })),
  form('POST /settings/people/:operatorId/factors', 'operator.remove_second_factors', async (stage) => {
    const { id, email } = await stage.colleague();
    await addApp(stage, id, email);
    return { ':operatorId': id };
  }),
  form('POST /settings/people/:operatorId/link', 'operator.send_password_link', onColleague),
  form('POST /settings/sign-on/key', 'sign_on.create_key'),
  form('POST /settings/sign-on/peer', 'sign_on.save_peer', async ({ monitor }) => {
    await monitor.signOn.createKey(systemActor);
    return peerFields();
  }),
  form('POST /settings/sign-on/link', 'sign_on.link_account', plantPerson),
  form('POST /settings/sign-on/unlink', 'sign_on.unlink_account', async (stage) => {
    const { subject, person } = await plantPerson(stage);
    await stage.monitor.signOn.linkAccount(systemActor, { subjectId: subject, personId: person });
    return { subject };
  }),
  form('POST /account/app/confirm', 'second_factor.add_app', async ({ monitor, operatorId }) => {
    const id = await operatorId();
    await monitor.factors.removeTotp(id);
    return { code: codeOf((await monitor.factors.beginTotp(id, operatorEmail))!.secret) };
  }),
  form('POST /account/recovery', 'second_factor.renew_recovery_codes', async (stage) => {
    await addApp(stage, await stage.operatorId(), operatorEmail);
    return {};
  }),
  // Behind the renewed codes, so that the app is gone for what follows.
  form('POST /account/app/remove', 'second_factor.remove_app', async (stage) => {
    await addApp(stage, await stage.operatorId(), operatorEmail);
    return {};
  }),
  form('POST /account/password', 'operator.change_password', { current: testPassword, next: testPassword }),
  form('POST /account/sessions/end', 'session.end_one', async ({ operator, monitor, operatorId }) => {
    const id = await operatorId();
    await monitor.sessions.start(id);
    const session = (await monitor.sessions.list(id, operator.cookie)).find((one) => !one.isCurrent)!;
    return { session: session.id };
  }),
  form('POST /account/sessions/end-others', 'session.end_others'),
]);

export const cases: Readonly<Record<string, Case<Stage, Answer>>> = {
  ...consoleCases,
  ...protectionCases,
  'POST /agent/v1/enrol': [
    'sensor.enrol',
    async ({ server, token, next }) => {
      const name = `enrolled-${next()}`;
      return ask(`${server.url}/agent/v1/enrol`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          token: await token(),
          host_name: name,
          node: name,
          sensor_version: '0.1.0',
        }),
      });
    },
  ],
  'POST /agent/v1/credential': [
    'sensor.rotate_credential',
    async (stage) => rotate(stage, (await stage.sensor()).credential),
  ],
  'POST /sign-in': [
    'session.start',
    async ({ server, colleague }) =>
      ask(`${server.url}/sign-in`, {
        method: 'POST',
        body: new URLSearchParams({ email: (await colleague()).email, password: testPassword }),
      }),
  ],
  'POST /sign-out': ['session.end', async ({ server }) => (await server.signIn('viewer')).post('/sign-out')],
  'PUT /api/v1/sites/:siteId/application-settings': [
    'site.set_local_cidrs',
    ({ server, siteId, operator, next }) =>
      ask(`${server.url}/api/v1/sites/${siteId}/application-settings`, {
        method: 'PUT',
        headers: {
          cookie: operator.cookie,
          'x-csrf-token': operator.csrfToken,
          'sec-fetch-site': 'same-origin',
          'content-type': 'application/json',
        },
        body: JSON.stringify({ local_cidrs: [`10.${next()}.0.0/16`] }),
      }),
  ],
  'POST /set-password/:secret': [
    'operator.set_password_by_link',
    async ({ server, monitor, colleague }) => {
      const sent = await monitor.operators.sendAccessLink(systemActor, (await colleague()).id);
      if (sent?.delivery.kind !== 'shown') throw new Error('the link was not shown');
      const { pathname } = new URL(sent.delivery.url);
      const body = new URLSearchParams({ password: 'another password, quite long' });
      return ask(`${server.url}${pathname}`, { method: 'POST', body });
    },
  ],
  'POST /sign-in/code': [
    'session.start',
    async (stage) => {
      const { server, monitor, colleague } = stage;
      const { id, email } = await colleague();
      await addApp(stage, id, email);
      const [code = ''] = await monitor.factors.renewRecoveryCodes(id);
      const body = new URLSearchParams({ email, password: testPassword });
      const begun = await fetch(`${server.url}/sign-in`, { method: 'POST', body, redirect: 'manual' });
      const cookie = begun.headers.getSetCookie()[0]!.split(';')[0]!;
      return ask(`${server.url}/sign-in/code`, {
        method: 'POST',
        headers: { cookie },
        body: new URLSearchParams({ code }),
      });
    },
  ],
  'POST /sign-on/link': [
    'sign_on.link_account',
    async ({ monitor, server, operator }) => {
      const cookies = await plantAnswer(monitor.signOn, systemActor, 'svc_monitor');
      return ask(`${server.url}/sign-on/link`, {
        method: 'POST',
        headers: { accept: 'text/html', cookie: `${operator.cookie}; ${cookies}` },
        body: new URLSearchParams({ csrf_token: operator.csrfToken }),
      });
    },
  ],
};
