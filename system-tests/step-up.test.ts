/** Every route of every server that can change something, asked with a session whose person proved who they are 16 minutes ago. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
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
  /^\/sign-in(\/code|\/passkey|\/passkey\/options)?$/,
  /^\/(reset-password|set-password\/:secret|join\/:secret|sign-on\/answer)$/,
  // Its session ends here.
  /^\/sign-out$/,
];

/** All that may go on; the table must not have more. */
const goesOn = [
  /\/views(\/:viewId\/remove)?$/,
  /\/account\/sessions\//,
  /^\/client\/servers\/(new\/check$|:id\/(actions|words|networks|firewall|protect)(\/|$))/,
  /^\/client\/networks\//,
  /^\/client\/settings\/(organization|workspaces|invitations\/revoke)$/,
  /^\/client\/developer\/webhooks\/:id\/(delete|enable|disable|test|replay)$/,
  /^\/console\/(reconciliation|servers)\//,
  /^\/sites\/:siteId\/(devices|vulnerabilities|availability)(\/|$)/,
  /^\/sites\/:siteId\/protection\/(?!hand-off\/(limit|rules)|additional-cidrs)/,
  /^\/alerts\/(:episodeId\/|channels\/:channelId\/(test|enable)$)/,
  /^\/operations\/(test|import)$/,
];
/** The form has the password of people without a second factor. */
const ownPassword = /\/account\/password$/;

interface Served {
  url: string;
  routes: readonly { method: string; url: string }[];
  database: Pick<TestDatabase, 'pool'>;
  /** The `Cookie` header for a path. */
  cookieOf(path: string): string;
}

const servers: Record<string, (t: TestContext) => Promise<Served>> = {
  async operations(t) {
    const world = await createWorld({ demoWorld: true });
    t.after(() => world[Symbol.asyncDispose]());
    const { email } = await world.createCustomer('Owner');
    await world.accounts.createPerson(systemActor, {
      ...{ email: 'operator@staff.test', name: 'Operator', password, staffRole: 'operator' },
    });
    const owner = await world.signIn(email, password);
    const operator = await world.signIn('operator@staff.test', password);
    const cookieOf = (path: string) => (path.startsWith('/client/') ? owner : operator);
    return { url: world.url, routes: world.routes, database: world.database, cookieOf };
  },
  async monitor(t) {
    const server = await startMonitorServer({ SVC_DEMO_WORLD: '1' });
    t.after(() => server[Symbol.asyncDispose]());
    const { cookie } = await server.signIn('operator');
    return { ...server, cookieOf: () => cookie };
  },
};

for (const [name, start] of Object.entries(servers))
  test(`${name}: every route that can change something asks for proof after 15 minutes, but for those that are named here`, async (t) => {
    const { url, routes, database, cookieOf } = await start(t);
    const unsafe = routes.filter(
      (route) =>
        !['GET', 'HEAD', 'OPTIONS'].includes(route.method) &&
        !withoutSession.some((pattern) => pattern.test(route.url)),
    );
    assert.deepEqual(
      unsafe.filter((route) => !stepUpOf.has(route.url)),
      [],
    );
    const { rows } = await database.pool.query<{ person: number; token: string }>(
      'select person_id::int as person, csrf_token as token from sessions',
    );
    /** Whether the route asks, by the status and the words of its answer. */
    const asks = async (route: { method: string; url: string }) => {
      const path = route.url.replaceAll(/:\w+/g, '1');
      const tokens = rows.map(({ token }) => token);
      for (const csrf_token of tokens) {
        const isJson = path.startsWith('/api/');
        const answer = await fetch(url + path, {
          method: route.method,
          redirect: 'manual',
          headers: {
            cookie: cookieOf(path),
            accept: 'text/html',
            'content-type': isJson ? 'application/json' : 'application/x-www-form-urlencoded',
            'x-csrf-token': csrf_token,
          },
          body: isJson ? '{}' : String(new URLSearchParams({ csrf_token })),
        });
        const text = await answer.text();
        // Of another person's session.
        if (answer.status === 403 && text.includes('the form is out of date')) continue;
        return answer.status === 403 && /Confirm that it is you|confirmation_required/.test(text);
      }
      throw new Error(`${path} takes no token`);
    };
    const age = (minutes: number) =>
      database.pool.query('update sessions set authenticated_at = svc_now() - make_interval(mins => $1)', [
        minutes,
      ]);
    await age(14);
    assert.equal(
      await asks(unsafe.find((route) => route.url === '/sign-on/link')!),
      false,
      '14 minutes after the proof',
    );
    await age(16);
    const goes = (route: { url: string }) =>
      ownPassword.test(route.url) || goesOn.some((pattern) => pattern.test(route.url));
    // Those that ask first: the others may end sessions.
    for (const route of unsafe.toSorted((a, b) => Number(goes(a)) - Number(goes(b))))
      assert.equal(await asks(route), !goes(route), `${route.method} ${route.url}`);
    for (const { person } of rows)
      await database.pool.query(
        `insert into passkeys (credential_id, person_id, public_key, sign_count, transports, name)
         values ('a-passkey-of-' || $1::int, $1, '\\x00', 0, '{}', 'Key')`,
        [person],
      );
    for (const route of unsafe.filter((one) => ownPassword.test(one.url)))
      assert.equal(await asks(route), true, `${route.url} of a person with a passkey`);
  });

test('the table of step-up has no path that no server has', async (t) => {
  const served = await Promise.all(Object.values(servers).map((start) => start(t)));
  const known = new Set(served.flatMap(({ routes }) => routes.map((route) => route.url)));
  assert.deepEqual(
    [...stepUpOf.keys()].filter((path) => !known.has(path)),
    [],
  );
});
