/**
 * For every route that can change something, one request that does, and the operations that its answer must have left in
 * the audit trail. Routes that leave none are named with the reason.
 */
import { Secret, TOTP } from 'otpauth';
import {
  type Actor,
  endDebtSuspension,
  suspendForDebt,
  systemActor,
  systemJob,
} from '#operations/accounts/index.ts';
import { password } from '#operations/testing/create-world.ts';
import { examplePublicKey } from '#operations/testing/example-public-key.ts';
import type { Case as CaseOf } from '#service-kit/audit/testing/audited-routes.ts';
import { plantAnswer } from '#service-kit/sign-on/testing/plant-sign-on.ts';
import { form, operation, type Stage } from './audit-stage.ts';
import { consoleCases } from './audited-console.ts';
import { finishedDelivery, largePlan, portalCases, rescuable, rule, withIso } from './audited-portal.ts';

type Case = CaseOf<Stage, Response>;

/** Routes that may leave nothing, and why. */
export const exceptions: Readonly<Record<string, string>> = {
  'POST /sign-in/passkey/options': 'makes a challenge of five minutes; signing it is session.start',
  'POST /console/account/oidc/link': 'oidc.link, by a provider: operations/surfaces/public/oidc.test.ts',
  'POST /console/account/oidc/unlink':
    'oidc.unlink, of what a provider made: operations/surfaces/public/oidc.test.ts',
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
  'POST /client/servers/:id/resize/check': 'a rehearsal of a resize; its transaction is rolled back',
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

const apiCases = (['v1', 'v2'] as const).flatMap((version) => {
  const base = `/api/${version}`;
  const onServer = async ({ server }: Stage) => ({ ':id': await server() });
  const onNetwork = async ({ network }: Stage) => ({ ':id': (await network()).id });
  return [
    operation(`POST ${base}/servers`, ['order.place', 'server.create'], {
      ...{ plan: 'small', image: 'debian-12', location: 'fra' },
    }),
    operation(`PATCH ${base}/servers/:id`, 'server.describe', async (stage) => ({
      ...(await onServer(stage)),
      name: 'renamed',
    })),
    operation(`DELETE ${base}/servers/:id`, 'server.destroy', onServer),
    operation(`POST ${base}/servers/:id/actions`, 'server.stop', async (stage) => ({
      ...(await onServer(stage)),
      action: 'stop',
    })),
    operation(`POST ${base}/networks`, 'network.create', ({ next }) => ({
      name: `api-${next()}`,
      location: 'fra',
    })),
    operation(`PATCH ${base}/networks/:id`, 'network.update', async (stage) => ({
      ...(await onNetwork(stage)),
      name: 'renamed',
    })),
    operation(`DELETE ${base}/networks/:id`, 'network.delete', onNetwork),
    operation(`POST ${base}/networks/:id/sync`, 'network.sync', onNetwork),
    operation(`POST ${base}/servers/:id/networks`, 'network.attach_server', async (stage) => ({
      ...(await onServer(stage)),
      network_id: (await stage.network()).id,
    })),
    operation(
      `DELETE ${base}/servers/:id/networks/:network_id`,
      'network.detach_server',
      async ({ attached }) => {
        const { serverId, networkId } = await attached();
        return { ':id': serverId, ':network_id': networkId };
      },
    ),
    ...(version === 'v1'
      ? []
      : [
          operation(`POST ${base}/servers/:id/actions/rebuild`, 'server.rebuild', onServer),
          operation(`POST ${base}/servers/:id/actions/reset-password`, 'server.reset_password', onServer),
          operation(`POST ${base}/servers/:id/actions/rescue`, 'server.rescue', rescuable),
          operation(`POST ${base}/servers/:id/actions/unrescue`, 'server.unrescue', rescuable),
          operation(`POST ${base}/servers/:id/actions/attach-iso`, 'server.attach_iso', async (stage) => ({
            ...(await withIso(stage)),
            iso: 'tools',
          })),
          operation(`POST ${base}/servers/:id/actions/detach-iso`, 'server.detach_iso', withIso),
          operation(`POST ${base}/servers/:id/actions/resize`, 'server.resize', async (stage) => ({
            ...(await onServer(stage)),
            plan: await largePlan(stage),
          })),
          operation(`POST ${base}/servers/:id/console`, 'server.open_console', onServer),
          operation(`DELETE ${base}/actions/:id`, 'server.cancel_action', async ({ server, setUp }) => {
            const path = `${base}/servers/${await server()}/actions`;
            const stop = await setUp.call('POST', path, { action: 'stop' });
            return { ':id': ((await stop.json()) as { id: number }).id };
          }),
          operation(`POST ${base}/servers/:id/snapshots`, 'server.create_snapshot', onServer),
          operation(
            `POST ${base}/snapshots/:id/restore`,
            'server.restore_snapshot',
            async ({ snapshot }) => ({
              ':id': (await snapshot()).id,
            }),
          ),
          operation(`DELETE ${base}/snapshots/:id`, 'server.delete_snapshot', async ({ snapshot }) => ({
            ':id': (await snapshot()).id,
          })),
          operation(`POST ${base}/addresses`, 'address.reserve', { location: 'fra' }),
          operation(`PATCH ${base}/addresses/:id`, 'address.update', async ({ address }) => ({
            ':id': await address(),
            name: 'renamed',
          })),
          operation(`DELETE ${base}/addresses/:id`, 'address.release', async ({ address }) => ({
            ':id': await address(),
          })),
          operation(
            `POST ${base}/addresses/:id/attach`,
            'server.attach_address',
            async ({ address, server }) => ({
              ':id': await address(),
              server_id: await server(),
            }),
          ),
          operation(
            `POST ${base}/addresses/:id/detach`,
            'server.detach_address',
            async ({ address, server }) => ({
              ':id': await address(await server()),
            }),
          ),
          ...(['PUT', 'DELETE'] as const).map((method) =>
            operation(
              `${method} ${base}/servers/:id/addresses/:address/reverse-dns`,
              'server.set_reverse_dns',
              async ({ named }) => {
                const { serverId, address } = await named();
                const name = method === 'PUT' ? { reverse_dns: 'other.example.org', force: true } : {};
                return { ':id': serverId, ':address': address, ...name };
              },
            ),
          ),
          operation(`POST ${base}/ssh-keys`, 'ssh_key.create', ({ next }) => ({
            name: `api ssh ${next()}`,
            public_key: examplePublicKey(next()),
          })),
          operation(`PATCH ${base}/ssh-keys/:id`, 'ssh_key.update', async ({ sshKey, next }) => ({
            ':id': await sshKey(),
            name: `renamed ${next()}`,
          })),
          operation(`DELETE ${base}/ssh-keys/:id`, 'ssh_key.delete', async ({ sshKey }) => ({
            ':id': await sshKey(),
          })),
          operation(`PUT ${base}/servers/:id/firewall`, 'firewall.replace', async ({ server }) => ({
            ':id': await server(),
            ...{ enabled: true, policies: { inbound: 'drop', outbound: 'accept' }, rules: [] },
          })),
          operation(`POST ${base}/servers/:id/firewall/rules`, 'firewall.add', async ({ server }) => ({
            ':id': await server(),
            ...rule,
          })),
          operation(
            `PUT ${base}/servers/:id/firewall/rules/:rule_id`,
            'firewall.edit',
            async ({ filtered }) => {
              const of = await filtered();
              return { ':id': of[':id'], ':rule_id': of.rule, ...rule, action: 'drop' };
            },
          ),
          operation(
            `DELETE ${base}/servers/:id/firewall/rules/:rule_id`,
            'firewall.remove',
            async ({ filtered }) => {
              const of = await filtered();
              return { ':id': of[':id'], ':rule_id': of.rule };
            },
          ),
          operation(
            `PATCH ${base}/account`,
            'bandwidth.choose_when_used_up',
            async ({ chargeWhenUsedUp }) => {
              await chargeWhenUsedUp();
              return { when_used_up: 'limit' };
            },
          ),
          operation(`POST ${base}/webhooks`, 'webhook.create', {
            ...{ url: 'http://127.0.0.1:9/api', events: ['server.created'] },
          }),
          operation(`PATCH ${base}/webhooks/:id`, 'webhook.update', async ({ endpoint }) => ({
            ...{ ':id': await endpoint(), description: 'changed' },
          })),
          operation(`DELETE ${base}/webhooks/:id`, 'webhook.delete', async ({ endpoint }) => ({
            ':id': await endpoint(),
          })),
          operation(`POST ${base}/webhooks/:id/test`, 'webhook.test', async ({ endpoint }) => ({
            ':id': await endpoint(),
          })),
          operation(
            `POST ${base}/webhooks/:id/deliveries/:delivery_id/replay`,
            'webhook.replay',
            async (stage) => {
              const { endpointId, deliveryId } = await finishedDelivery(stage);
              return { ':id': endpointId, ':delivery_id': deliveryId };
            },
          ),
          operation(`POST ${base}/keys`, 'key.create', ({ next }) => ({
            name: `api key ${next()}`,
            scope: 'read',
          })),
          operation(`DELETE ${base}/keys/:key_id`, 'key.revoke', async ({ keyId }) => ({
            ':key_id': await keyId(),
          })),
          operation(`POST ${base}/servers/:id/port-scans`, 'protect.request_port_scan', onServer),
          operation(
            `POST ${base}/servers/:id/findings/ignores`,
            'protect.ignore_finding',
            async ({ found }) => {
              const { serverId, finding } = await found();
              return { ':id': serverId, ...finding, reason: 'audited' };
            },
          ),
        ]),
  ];
});

/** Gives a person an authenticator app. */
async function addApp({ world }: Stage, { id, email }: { id: number; email: string }): Promise<void> {
  await world.factors.removeTotp(id);
  const { secret } = (await world.factors.beginTotp(id, email))!;
  const confirmed = await world.factors.confirmTotp(id, codeOf(secret, world));
  if (confirmed === null) throw new Error('the code of a new app was refused');
}

const codeOf = (secret: string, { clock }: Stage['world']) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: clock.nowMs() });

/** What a customer and staff do alike: their own second factors, and views of the explorer. */
const ownCases = (['/client', '/console'] as const).flatMap((base) => {
  const isStaff = base === '/console';
  const personOf = ({ staff, owner, email }: Stage) => (isStaff ? staff : { id: owner.id, email });
  return [
    form(`POST ${base}/account/app/confirm`, 'second_factor.add_app', async (stage) => {
      const { id, email } = personOf(stage);
      await stage.world.factors.removeTotp(id);
      const { secret } = (await stage.world.factors.beginTotp(id, email))!;
      return { code: codeOf(secret, stage.world) };
    }),
    form(`POST ${base}/account/recovery`, 'second_factor.renew_recovery_codes', async (stage) => {
      await addApp(stage, personOf(stage));
      return {};
    }),
    // Behind the renewed codes, so that the app is gone for what follows.
    form(`POST ${base}/account/app/remove`, 'second_factor.remove_app', async (stage) => {
      await addApp(stage, personOf(stage));
      return {};
    }),
    form(`POST ${base}/traffic/views`, 'saved_view.save', ({ next }) => ({
      name: `view ${next()}`,
      query: 'by=server',
    })),
    form(
      `POST ${base}/traffic/views/:viewId/remove`,
      'saved_view.remove',
      async ({ world, next, staff, owner }) => {
        const { accounts } = world;
        const actor = await (isStaff ? accounts.staffActorOf(staff.id) : accounts.customerActorOf(owner.id));
        const view = { name: `view ${next()}`, query: '', isShared: false };
        return { ':viewId': (await world.savedViews.save(actor as Actor, view)).id };
      },
    ),
  ];
});

const publicCases: Record<string, Case> = {
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
      await addApp(stage, { id, email });
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
  'POST /sign-on/link': [
    'sign_on.link_account',
    async ({ world, staff }) => {
      const session = await world.signIn(staff.email);
      const { csrfToken } = (await world.sessions.read(session))!;
      const cookies = await plantAnswer(world.signOn, systemActor, 'svc_operations', world.clock.nowMs());
      return postForm(`${world.url}/sign-on/link`, { csrf_token: csrfToken }, `${session}; ${cookies}`);
    },
  ],
  'DELETE /api/v2/servers/:id/findings/ignores': [
    'protect.end_ignore',
    async ({ call, found, setUp }) => {
      const { serverId, finding } = await found();
      const path = `/api/v2/servers/${serverId}/findings/ignores`;
      await setUp.call('POST', path, { ...finding, reason: 'audited' });
      return call('DELETE', `${path}?${new URLSearchParams({ ...finding, port: String(finding.port) })}`);
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

export const cases: Readonly<Record<string, Case>> = {
  ...Object.fromEntries(ownCases),
  ...publicCases,
  ...portalCases,
  ...consoleCases,
  ...Object.fromEntries(apiCases),
};
