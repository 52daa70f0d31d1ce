/**
 * For every route of the monitor that can change data: one request, and its expected operation in the audit trail.
 * Routes without an entry are listed with the reason.
 */
import { Secret, TOTP } from 'otpauth';
import { systemActor } from '#monitor/operators/index.ts';
import { testPassword } from '#monitor/testing/server.ts';
import { findingCases } from './finding-cases.ts';
import { handOffCases } from './hand-off-cases.ts';
import { protectionCases } from './protection-cases.ts';
import { signOnCases } from './sign-on-cases.ts';
import { type Answer, type Case, operatorEmail, type Stage } from './stage.ts';

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

const connection = (stage: Stage, path: string) =>
  stage.operator.post(path, { base_url: stage.stub.url, token: stage.stub.token, is_enabled: 'on' });

export const cases: Readonly<Record<string, Case>> = {
  ...protectionCases,
  ...handOffCases,
  ...findingCases,
  ...signOnCases,
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
  'POST /sites': ['site.create', ({ operator, next }) => operator.post('/sites', { name: `site ${next()}` })],
  'POST /sites/:siteId/explore/views': [
    'saved_view.save',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/explore/views`, { name: `view ${next()}`, query: 'by=server' }),
  ],
  'POST /sites/:siteId/explore/views/:viewId/remove': [
    'saved_view.remove',
    async ({ operator, siteId, monitor, next }) => {
      const view = await monitor.savedViews.save(systemActor, siteId, { name: `view ${next()}`, query: '' });
      return operator.post(`/sites/${siteId}/explore/views/${view.id}/remove`);
    },
  ],
  'POST /sites/:siteId/read-tokens': [
    'read_token.create',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/read-tokens`, { name: `program ${next()}`, days: '30' }),
  ],
  'POST /sites/:siteId/read-tokens/:tokenId/revoke': [
    'read_token.revoke',
    async ({ operator, siteId, monitor }) => {
      const { token } = await monitor.readTokens.create(systemActor, siteId, { name: 'program', days: '' });
      return operator.post(`/sites/${siteId}/read-tokens/${token.split('_')[1]}/revoke`);
    },
  ],
  'POST /sites/:siteId/settings/full-scan': [
    'site.set_full_scan_time',
    ({ operator, siteId }) =>
      operator.post(`/sites/${siteId}/settings/full-scan`, { time: '03:30', zone: 'Europe/Berlin' }),
  ],
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
  'POST /sites/:siteId/devices/:deviceId/name': [
    'device.name',
    async ({ operator, siteId, device }) =>
      operator.post(`/sites/${siteId}/devices/${await device()}/name`, { name: 'printer' }),
  ],
  'POST /sites/:siteId/availability': [
    'probe.add',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/availability`, {
        name: `probe ${next()}`,
        kind: 'icmp',
        target: '192.0.2.1',
        interval: '10',
        timeout: '1000',
      }),
  ],
  'POST /sites/:siteId/availability/:probeId': [
    'probe.change',
    async ({ operator, siteId, probe }) => {
      const { id, name } = await probe();
      const form = { name, interval: '20', timeout: '1000' };
      return operator.post(`/sites/${siteId}/availability/${id}`, form);
    },
  ],
  'POST /sites/:siteId/availability/:probeId/delete': [
    'probe.remove',
    async ({ operator, siteId, probe }) => {
      const { id, name } = await probe();
      return operator.post(`/sites/${siteId}/availability/${id}/delete`, { confirm_name: name });
    },
  ],
  'POST /sites/:siteId/sensors/:sensorId/revoke': [
    'sensor.revoke',
    async ({ operator, siteId, sensor }) => {
      const { id, hostName } = await sensor();
      return operator.post(`/sites/${siteId}/sensors/${id}/revoke`, { confirm_name: hostName });
    },
  ],
  'POST /sites/:siteId/sensors/:sensorId/rotate': [
    'sensor.request_rotation',
    async ({ operator, siteId, sensor }) =>
      operator.post(`/sites/${siteId}/sensors/${(await sensor()).id}/rotate`),
  ],
  'POST /sites/:siteId/sensors/:sensorId/node': [
    'sensor.choose_node',
    async ({ operator, siteId, sensor, next }) =>
      operator.post(`/sites/${siteId}/sensors/${(await sensor()).id}/node`, { node_name: `node-${next()}` }),
  ],
  'POST /alerts/:episodeId/acknowledge': [
    'alert.acknowledge',
    async ({ operator, episode }) =>
      operator.post(`/alerts/${await episode()}/acknowledge`, { note: 'looking' }),
  ],
  'POST /alerts/:episodeId/mute': [
    'alert.mute',
    async ({ operator, episode }) => operator.post(`/alerts/${await episode()}/mute`, { hours: '0' }),
  ],
  'POST /alerts/channels': [
    'channel.add',
    ({ operator, next }) =>
      operator.post('/alerts/channels', {
        kind: 'email',
        name: `added ${next()}`,
        setting_recipients: 'ops@example.org',
      }),
  ],
  'POST /alerts/channels/:channelId': [
    'channel.change',
    async ({ operator, channel, next }) =>
      operator.post(`/alerts/channels/${await channel()}`, {
        name: `changed ${next()}`,
        setting_recipients: 'night@example.org',
      }),
  ],
  ...Object.fromEntries(
    ['test', 'enable', 'disable', 'delete'].map((verb): [string, Case] => [
      `POST /alerts/channels/:channelId/${verb}`,
      [
        `channel.${verb}`,
        async ({ operator, channel }) => operator.post(`/alerts/channels/${await channel()}/${verb}`),
      ],
    ]),
  ),
  'POST /sites/:siteId/settings/name': [
    'site.rename',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/settings/name`, { name: `renamed ${next()}` }),
  ],
  'POST /sites/:siteId/settings/local-cidrs': [
    'site.set_local_cidrs',
    ({ operator, siteId, next }) =>
      operator.post(`/sites/${siteId}/settings/local-cidrs`, { local_cidrs: `10.${next()}.0.0/16` }),
  ],
  'POST /sites/:siteId/settings/enrolment-tokens': [
    'site.issue_enrolment',
    ({ operator, siteId }) =>
      operator.post(`/sites/${siteId}/settings/enrolment-tokens`, { node_name: 'node-1' }),
  ],
  'POST /operations/connection': ['connection.save', (stage) => connection(stage, '/operations/connection')],
  'POST /operations/connection/untested': [
    'connection.save',
    (stage) => connection(stage, '/operations/connection/untested'),
  ],
  'POST /operations/import': [
    'inventory.import',
    async ({ operator, connect }) => {
      await connect();
      return operator.post('/operations/import');
    },
  ],
  'POST /operations/clusters': [
    'site.map_cluster',
    ({ operator, siteId, next }) =>
      operator.post('/operations/clusters', { cluster_id: String(next()), site_id: String(siteId) }),
  ],
  'POST /operations/notice-secret': [
    'connection.set_notice_secret',
    ({ operator }) => operator.post('/operations/notice-secret', { confirm_name: 'new secret' }),
  ],
  'POST /settings/people': [
    'operator.create',
    ({ operator, next }) =>
      operator.post('/settings/people', { email: `invited-${next()}@example.org`, role: 'viewer' }),
  ],
  'POST /settings/people/:operatorId': [
    'operator.change',
    async ({ operator, colleague }) =>
      operator.post(`/settings/people/${(await colleague()).id}`, { role: 'operator' }),
  ],
  'POST /settings/people/:operatorId/factors': [
    'operator.remove_second_factors',
    async (stage) => {
      const { id, email } = await stage.colleague();
      await addApp(stage, id, email);
      return stage.operator.post(`/settings/people/${id}/factors`);
    },
  ],
  'POST /settings/people/:operatorId/link': [
    'operator.send_password_link',
    async ({ operator, colleague }) => operator.post(`/settings/people/${(await colleague()).id}/link`),
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
  'POST /account/app/confirm': [
    'second_factor.add_app',
    async ({ operator, monitor, operatorId }) => {
      const id = await operatorId();
      await monitor.factors.removeTotp(id);
      const { secret } = (await monitor.factors.beginTotp(id, operatorEmail))!;
      return operator.post('/account/app/confirm', { code: codeOf(secret) });
    },
  ],
  'POST /account/recovery': [
    'second_factor.renew_recovery_codes',
    async (stage) => {
      const id = await stage.operatorId();
      await addApp(stage, id, operatorEmail);
      const answer = await stage.operator.post('/account/recovery');
      await stage.monitor.factors.removeTotp(id);
      return answer;
    },
  ],
  'POST /account/app/remove': [
    'second_factor.remove_app',
    async (stage) => {
      await addApp(stage, await stage.operatorId(), operatorEmail);
      return stage.operator.post('/account/app/remove');
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
  'POST /account/password': [
    'operator.change_password',
    ({ operator }) => operator.post('/account/password', { current: testPassword, next: testPassword }),
  ],
  'POST /account/sessions/end': [
    'session.end_one',
    async ({ operator, monitor }) => {
      const { id } = (await monitor.operators.list()).find(
        (one) => one.email === 'operator@monitor.example',
      )!;
      await monitor.sessions.start(id);
      const session = (await monitor.sessions.list(id, operator.cookie)).find((one) => !one.isCurrent)!;
      return operator.post('/account/sessions/end', { session: session.id });
    },
  ],
  'POST /account/sessions/end-others': [
    'session.end_others',
    ({ operator }) => operator.post('/account/sessions/end-others'),
  ],
};
