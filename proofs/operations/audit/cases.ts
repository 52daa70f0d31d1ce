/**
 * For every route that can change something, one request that does, and the operations that its answer must have left in
 * the audit trail. Routes that leave none are named with the reason.
 */
import { endDebtSuspension, suspendForDebt, systemActor, systemJob } from '#operations/accounts/index.ts';
import { password } from '#operations/testing/create-world.ts';
import type { Cases } from './case.ts';
import { consoleCases } from './console-cases.ts';
import { addApp, factorCases } from './factor-cases.ts';
import { portalCases } from './portal-cases.ts';
import { savedViewCases } from './saved-view-cases.ts';
import { signOnCases } from './sign-on-cases.ts';
import type { Stage } from './stage.ts';

/** Routes that may leave nothing, and why. */
export const exceptions: Readonly<Record<string, string>> = {
  'POST /sign-in/passkey/options': 'makes a challenge of five minutes; signing it is session.start',
  'POST /sign-in/passkey': 'session.start, by an authenticator: operations/surfaces/passkeys.test.ts',
  'POST /sign-on/answer':
    'keeps a signed assertion for minutes; session.start or sign_on.link_account says what it was used for',
  'POST /client/account/app/new': 'makes a secret that is not in use before second_factor.add_app',
  'POST /console/account/app/new': 'makes a secret that is not in use before second_factor.add_app',
  'POST /client/account/passkeys/new': 'makes a challenge of five minutes',
  'POST /console/account/passkeys/new': 'makes a challenge of five minutes',
  'POST /client/account/passkeys':
    'second_factor.add_passkey, by an authenticator: operations/surfaces/passkeys.test.ts',
  'POST /console/account/passkeys': 'second_factor.add_passkey, by an authenticator',
  'POST /client/account/passkeys/remove': 'second_factor.remove_passkey, of what an authenticator made',
  'POST /console/account/passkeys/remove': 'second_factor.remove_passkey, of what an authenticator made',
  'POST /reset-password': 'mails a link after the answer; person.set_password_by_link says when it is used',
  'POST /client/servers/new/check': 'a rehearsal of an order; its transaction is rolled back',
  'POST /client/billing/cards/new': 'opens the payment page; the card that comes back is card.add',
  'POST /integrations/stripe':
    'a signed reminder of the gateway to look at a charge; the charge itself was recorded when a person asked for it',
  'POST /api/admin/v1/protect/telemetry/': 'measurements, many a minute; each stores its source',
  'POST /api/admin/v1/protect/live/': 'measurements, every few seconds; each stores its source',
  'POST /api/admin/v1/protect/incidents/':
    'what a monitor observed of attacks; each incident stores its source',
  'POST /api/admin/v1/protect/scan-requests/':
    'what became of scan requests at a monitor; the request itself is protect.request_port_scan',
  'POST /api/admin/v1/protect/port-scans/': 'what scans found; each result stores its source',
  'POST /api/admin/v1/protect/vulnerabilities/':
    'what a public database says of scanned services; each check stores its source',
};

/** What changes something without a route: commands, background jobs, and doors that only other features open. */
export const otherCases: Readonly<
  Record<
    string,
    readonly [operations: string | readonly string[], change: (stage: Stage) => Promise<unknown>]
  >
> = {
  'command create-operator': [
    'person.create',
    ({ world, next }) =>
      world.accounts.createPerson(systemJob('create-operator'), {
        email: `command-${next()}@staff.test`,
        name: 'Command',
        password,
      }),
  ],
  'an organization for a person who is known': [
    'organization.create',
    ({ world, owner, next }) =>
      world.accounts.createOrganization(systemActor, { name: `Org ${next()}`, ownerId: owner.id }),
  ],
  'the demo world, which prints the passwords of its people': [
    'person.reset_password',
    async ({ member, world }) => world.accounts.setPassword(systemActor, (await member()).id, password),
  ],
  'a customer for an address that a stranger has claimed and that is not proved': [
    ['person.reset_account', 'key.revoke'],
    async ({ world, next }) => {
      const { owner, tenant, email } = await world.createCustomer(`Claimed${next()}`);
      await world.createKey({ owner, tenant });
      await world.database.pool.query('update people set email_verified_at = null where id = $1', [owner.id]);
      return world.accounts.createCustomer(systemActor, {
        organization: `Own ${next()}`,
        email,
        name: 'Owner',
      });
    },
  ],
  'a member who is known': ['organization.add_member', ({ member }) => member()],
  'keys of one name, revoked together': [
    'key.revoke',
    async ({ world, owner, keyId, next }) => {
      const name = `named ${next()}`;
      await keyId(name);
      return world.apiKeys.revokeKeysNamed(systemActor, owner.id, name);
    },
  ],
  'the job that suspends for debt': [
    'tenant.set_status',
    async ({ db, otherCustomer }) => {
      const { tenant } = await otherCustomer();
      return db.transaction().execute((trx) => suspendForDebt(trx, tenant.id));
    },
  ],
  'the job that ends a suspension for debt': [
    'tenant.set_status',
    async ({ db, otherCustomer, world }) => {
      const { tenant } = await otherCustomer();
      await world.database.pool.query(
        "update tenants set status = 'SUSPENDED', suspended_for = 'debt' where id = $1",
        [tenant.id],
      );
      return db.transaction().execute((trx) => endDebtSuspension(trx, tenant.id));
    },
  ],
};

function apiCases(version: 'v1' | 'v2'): Cases {
  const base = `/api/${version}`;
  return {
    [`POST ${base}/servers`]: [
      ['order.place', 'server.create'],
      ({ call }) => call('POST', `${base}/servers`, { plan: 'small', image: 'debian-12', location: 'fra' }),
    ],
    [`PATCH ${base}/servers/:id`]: [
      'server.describe',
      async ({ call, server }) => call('PATCH', `${base}/servers/${await server()}`, { name: 'renamed' }),
    ],
    [`DELETE ${base}/servers/:id`]: [
      'server.destroy',
      async ({ call, server }) => call('DELETE', `${base}/servers/${await server()}`),
    ],
    [`POST ${base}/servers/:id/actions`]: [
      'server.stop',
      async ({ call, server }) =>
        call('POST', `${base}/servers/${await server()}/actions`, { action: 'stop' }),
    ],
    ...(version === 'v2' && {
      [`DELETE ${base}/actions/:id`]: [
        'server.cancel_action',
        async ({ call, server, setUp }: Stage) => {
          const stop = await setUp.call('POST', `${base}/servers/${await server()}/actions`, {
            action: 'stop',
          });
          return call('DELETE', `${base}/actions/${((await stop.json()) as { id: number }).id}`);
        },
      ] as const,
      [`POST ${base}/servers/:id/port-scans`]: [
        'protect.request_port_scan',
        async ({ call, server }: Stage) => call('POST', `${base}/servers/${await server()}/port-scans`),
      ] as const,
      [`POST ${base}/servers/:id/findings/ignores`]: [
        'protect.ignore_finding',
        async ({ call, found }: Stage) => {
          const { serverId, finding } = await found();
          return call('POST', `${base}/servers/${serverId}/findings/ignores`, {
            ...finding,
            reason: 'audited',
          });
        },
      ] as const,
      [`DELETE ${base}/servers/:id/findings/ignores`]: [
        'protect.end_ignore',
        async ({ call, found, setUp }: Stage) => {
          const { serverId, finding } = await found();
          const path = `${base}/servers/${serverId}/findings/ignores`;
          await setUp.call('POST', path, { ...finding, reason: 'audited' });
          return call('DELETE', `${path}?${new URLSearchParams({ ...finding, port: String(finding.port) })}`);
        },
      ] as const,
    }),
    [`POST ${base}/networks`]: [
      'network.create',
      ({ call, next }) => call('POST', `${base}/networks`, { name: `api-${next()}`, location: 'fra' }),
    ],
    [`PATCH ${base}/networks/:id`]: [
      'network.update',
      async ({ call, network }) =>
        call('PATCH', `${base}/networks/${(await network()).id}`, { name: 'renamed' }),
    ],
    [`DELETE ${base}/networks/:id`]: [
      'network.delete',
      async ({ call, network }) => call('DELETE', `${base}/networks/${(await network()).id}`),
    ],
    [`POST ${base}/networks/:id/sync`]: [
      'network.sync',
      async ({ call, network }) => call('POST', `${base}/networks/${(await network()).id}/sync`),
    ],
    [`POST ${base}/servers/:id/networks`]: [
      'network.attach_server',
      async ({ call, network, server }) =>
        call('POST', `${base}/servers/${await server()}/networks`, { network_id: (await network()).id }),
    ],
    [`DELETE ${base}/servers/:id/networks/:network_id`]: [
      'network.detach_server',
      async ({ call, attached }) => {
        const { serverId, networkId } = await attached();
        return call('DELETE', `${base}/servers/${serverId}/networks/${networkId}`);
      },
    ],
  };
}

const publicCases: Cases = {
  'POST /sign-in': [
    'session.start',
    ({ world, email }) => postForm(`${world.url}/sign-in`, { email, password }),
  ],
  'POST /sign-out': [
    'session.end',
    async ({ world, email }) => {
      const cookie = await world.signIn(email);
      const home = await (await fetch(`${world.url}/client/`, { headers: { cookie } })).text();
      const csrf = /name="csrf_token" value="([^"]+)"/.exec(home)![1]!;
      return postForm(`${world.url}/sign-out`, { csrf_token: csrf }, cookie);
    },
  ],
  'POST /sign-in/code': [
    'session.start',
    async (stage) => {
      const { world, member } = stage;
      const { id, email } = await member();
      await addApp(stage, id, email);
      const [code = ''] = await world.factors.renewRecoveryCodes(id);
      const begun = await postForm(`${world.url}/sign-in`, { email, password });
      const cookie = begun.headers.getSetCookie()[0]!.split(';')[0]!;
      return postForm(`${world.url}/sign-in/code`, { code }, cookie);
    },
  ],
  'POST /join/:secret': [
    'invitation.accept',
    async ({ world, tenant, next }) => {
      const email = `joins-${next()}@audited.test`;
      await world.accounts.inviteMember(systemActor, tenant.organizationId, email);
      const url = /http\S+\/join\/\S+/.exec((await world.mailsTo(email))[0]!.text)![0];
      return postForm(url, { name: 'Joins', password });
    },
  ],
  'POST /set-password/:secret': [
    'person.set_password_by_link',
    async ({ world, member }) => {
      const { id, email } = await member();
      await world.accounts.sendAccessLink(systemActor, id);
      const url = /http\S+\/set-password\/\S+/.exec((await world.mailsTo(email))[0]!.text)![0];
      return postForm(url, { password: 'another long one' });
    },
  ],
};

function postForm(url: string, fields: Record<string, string>, cookie = ''): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: { accept: 'text/html', ...(cookie ? { cookie } : {}) },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  });
}

export const cases: Cases = {
  ...factorCases('/client/account'),
  ...factorCases('/console/account'),
  ...publicCases,
  ...portalCases,
  ...savedViewCases,
  ...signOnCases,
  ...consoleCases,
  ...apiCases('v1'),
  ...apiCases('v2'),
};
