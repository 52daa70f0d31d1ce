/**
 * Every route of both servers, by the routers' own lists: without a session, as a person who only reads, with a request that
 * another site could have sent, and with a session whose person proved who they are 16 minutes ago.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { createWorld, password } from '#operations/testing/create-world.ts';
import { stepUpOf } from '#service-kit/sign-in/index.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';

/** Routes that take no session: programs have credentials, and these forms are for people before they have a session. */
const withoutSession = [
  /^\/agent\/v1\//,
  /^\/integrations\//,
  /^\/api\/(v[12]\/(?!sites\/)|admin\/v1\/)/,
  // The one of the demo answers this machine alone.
  /^\/sign-in(\/code|\/demo|\/passkey|\/passkey\/options)?$/,
  /^\/(reset-password|set-password\/:secret|join\/:secret|sign-on\/answer)$/,
  // Its session ends here.
  /^\/sign-out$/,
];

/** All that may go on; the table must not have more. */
const goesOn = [
  /\/views(\/:viewId\/remove)?$/,
  /\/account\/sessions\//,
  /^(\/client)?\/demo\/attack$/,
  /^\/client\/servers\/(new\/check$|:id\/resize\/check$|:id\/(snapshots|attach-iso|detach-iso)$|:id\/(actions|words|networks|reverse-dns|firewall|protect)(\/|$))/,
  /^\/client\/(networks|addresses)\//,
  /^\/client\/settings\/(organization|workspaces|invitations\/revoke)$/,
  /^\/client\/developer\/ssh-keys\/delete$/,
  /^\/client\/developer\/webhooks\/:id\/(delete|enable|disable|test|replay)$/,
  /^\/console\/(reconciliation\/|clusters\/nodes\/:id\/check$|servers\/(?!:id\/guard$))/,
  /^\/sites\/:siteId\/(devices|vulnerabilities|availability)(\/|$)/,
  /^\/sites\/:siteId\/protection\/(?!hand-off\/(limit|rules)|additional-cidrs)/,
  /^\/alerts\/(:episodeId\/|channels\/:channelId\/(test|enable)$)/,
  /^\/operations\/(test|import)$/,
];
/** The form has the password of people without a second factor. */
const ownPassword = /\/account\/password$/;

/** Pages that need no session. */
const publicPages =
  /^\/(assets\/|developers\/|health|readyz|livez|favicon|metrics|dev\/|sign-in|sign-on\/|reset-password|set-password\/|join\/|$)|^\/(agent|api)\/|^\/(docs|openapi)/;

interface Route {
  method: string;
  url: string;
}

interface Session {
  cookie: string;
  csrfToken: string;
}

interface Served {
  url: string;
  routes: readonly Route[];
  pool: TestDatabase['pool'];
  /** Of a person who may send the forms under a path. */
  sessionOf(path: string): Session;
  /** Of a person who may not. */
  other: Session;
  stop(): Promise<void>;
}

/** No route of it runs the command: nothing that they are sent is a server's address. */
const demoAttack = JSON.stringify(['false']);

const servers: Record<string, () => Promise<Served>> = {
  async operations() {
    const world = await createWorld({ demoWorld: true, demoAttack });
    const { email } = await world.createCustomer('Owner');
    for (const staffRole of ['operator', 'support'] as const)
      await world.accounts.createPerson(systemActor, {
        ...{ email: `${staffRole}@staff.test`, name: staffRole, password, staffRole },
      });
    const signIn = async (address: string) => {
      const cookie = await world.signIn(address, password);
      return { cookie, csrfToken: (await world.sessions.read(cookie))!.csrfToken };
    };
    const [owner, operator] = [await signIn(email), await signIn('operator@staff.test')];
    return {
      ...{ url: world.url, routes: world.routes, pool: world.database.pool },
      sessionOf: (path) => (path.startsWith('/client/') ? owner : operator),
      other: await signIn('support@staff.test'),
      stop: () => world[Symbol.asyncDispose](),
    };
  },
  async monitor() {
    const server = await startMonitorServer({ SVC_DEMO_WORLD: '1', SVC_DEMO_ATTACK: demoAttack });
    const operator = await server.signIn('operator');
    return {
      ...{ url: server.url, routes: server.routes, pool: server.database.pool },
      sessionOf: () => operator,
      other: await server.signIn('viewer'),
      stop: async () => server[Symbol.asyncDispose](),
    };
  },
};

const pathOf = ({ url }: Route) => url.replaceAll(/:\w+/g, '1');
const isForPrograms = ({ url }: Route) => url.startsWith('/api/');

const running = new Map<string, Served>();
before(async () => {
  for (const [name, start] of Object.entries(servers)) running.set(name, await start());
});
after(async () => {
  for (const served of running.values()) await served.stop();
});

for (const name of Object.keys(servers))
  describe(name, () => {
    let served: Served;
    /** What can change something behind a session. */
    let unsafe: Route[];
    before(() => {
      served = running.get(name)!;
      unsafe = served.routes.filter(
        ({ method, url }) =>
          !['GET', 'HEAD', 'OPTIONS'].includes(method) &&
          !withoutSession.some((pattern) => pattern.test(url)),
      );
    });

    /** Sends what a form of ours sends; `headers` and `token` may differ from it. */
    async function send(route: Route, headers: Record<string, string>, token: string | null) {
      const path = pathOf(route);
      const isJson = isForPrograms(route);
      const hasBody = !['GET', 'HEAD'].includes(route.method);
      const csrf = token === null ? {} : { csrf_token: token };
      const answer = await fetch(served.url + path, {
        method: route.method,
        redirect: 'manual',
        headers: {
          accept: 'text/html',
          ...(hasBody && {
            'content-type': isJson ? 'application/json' : 'application/x-www-form-urlencoded',
          }),
          ...headers,
        },
        ...(hasBody && { body: isJson ? JSON.stringify(csrf) : String(new URLSearchParams(csrf)) }),
      });
      return { status: answer.status, text: await answer.text(), location: answer.headers.get('location') };
    }

    test('every page and every form asks for a session, but for those that are named here', async () => {
      const pages = served.routes.filter(({ method, url }) => method === 'GET' && !publicPages.test(url));
      for (const route of [...pages, ...unsafe]) {
        const { status, location } = await send(route, {}, null);
        assert.ok(
          status === 401 || (status === 303 && location!.startsWith('/sign-in')),
          `${route.method} ${route.url}: ${status} ${location}`,
        );
      }
    });

    test('API-1.S6, NET-5.5: every form of the consoles is refused to a person who only reads, with any content', async () => {
      const ofOwn = /^(\/console)?\/account\/|^\/sign-on\/link$|^\/client\//;
      const forms = unsafe.filter(({ url }) => !ofOwn.test(url));
      assert.ok(forms.length > 30, `${forms.length} forms`);
      for (const route of forms) {
        const { cookie, csrfToken } = served.other;
        const { status, text } = await send(route, { cookie }, csrfToken);
        assert.equal(status, 403, `${route.method} ${route.url}`);
        assert.match(text, /read_only|read-only/, route.url);
      }
    });

    test('no form does anything for a request that another site could have sent', async () => {
      const signOut = { method: 'POST', url: '/sign-out' };
      for (const route of [...unsafe, signOut]) {
        const { cookie, csrfToken } = served.sessionOf(route.url);
        const forgeries: [token: string | null, headers?: Record<string, string>][] = [[null]];
        // One check refuses them all, for forms and for programs.
        if (route === signOut || isForPrograms(route)) {
          forgeries.push(
            [served.other.csrfToken],
            [csrfToken, { 'sec-fetch-site': 'cross-site' }],
            [''],
            [`${csrfToken}x`],
            [null, { cookie: `${cookie}; csrf_token=${csrfToken}` }],
            [csrfToken, { 'content-type': 'text/plain' }],
            [csrfToken, { 'content-type': 'multipart/form-data; boundary=x' }],
            [csrfToken, { 'sec-fetch-site': 'same-site' }],
            [csrfToken, { 'sec-fetch-site': 'none' }],
            [csrfToken, { origin: 'null' }],
            [csrfToken, { origin: 'https://evil.example' }],
          );
          const inQuery = { ...route, url: `${route.url}?csrf_token=${csrfToken}` };
          const answer = await send(inQuery, { cookie }, null);
          assert.equal(answer.status, 403, `${route.url}: the token in the query`);
        }
        for (const [token, headers] of forgeries) {
          const { status, text } = await send(route, { cookie, ...headers }, token);
          assert.ok(
            status === 415 || (status === 403 && /another site|no token|out of date/.test(text)),
            `${route.method} ${route.url} answered ${status} to ${token} ${JSON.stringify(headers)}`,
          );
        }
      }
    });

    test('every route that can change something asks for proof after 15 minutes, but for those that are named here', async () => {
      assert.deepEqual(
        unsafe.filter((route) => !stepUpOf.has(route.url)),
        [],
      );
      /** Whether the route asks, by the status and the words of its answer. */
      const asks = async (route: Route) => {
        const { cookie, csrfToken } = served.sessionOf(route.url);
        const { status, text } = await send(route, { cookie }, csrfToken);
        return status === 403 && /Confirm that it is you|confirmation_required/.test(text);
      };
      const age = (minutes: number) =>
        served.pool.query('update sessions set authenticated_at = svc_now() - make_interval(mins => $1)', [
          minutes,
        ]);
      await age(14);
      assert.equal(
        await asks(unsafe.find((route) => route.url === '/sign-on/link')!),
        false,
        '14 minutes after the proof',
      );
      await age(16);
      const goes = (route: Route) =>
        ownPassword.test(route.url) || goesOn.some((pattern) => pattern.test(route.url));
      // Those that ask first: the others may end sessions.
      for (const route of unsafe.toSorted((a, b) => Number(goes(a)) - Number(goes(b))))
        assert.equal(await asks(route), !goes(route), `${route.method} ${route.url}`);
      await served.pool.query(
        `insert into passkeys (credential_id, person_id, public_key, sign_count, transports, name)
         select 'a-passkey-of-' || person_id, person_id, '\\x00', 0, '{}', 'Key' from sessions group by person_id`,
      );
      for (const route of unsafe.filter((one) => ownPassword.test(one.url)))
        assert.equal(await asks(route), true, `${route.url} of a person with a passkey`);
    });
  });

test('the table of step-up has no path that no server has', () => {
  const known = new Set([...running.values()].flatMap(({ routes }) => routes.map((route) => route.url)));
  assert.deepEqual(
    [...stepUpOf.keys()].filter((path) => !known.has(path)),
    [],
  );
});
