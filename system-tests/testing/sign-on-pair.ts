/**
 * Operations and the monitor as they trust each other, with one operator in both, for tests of single sign-on. The tests
 * hold the private keys, so that they can sign what no program would.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { createTestClock, type TestClock } from '#common/clock/index.ts';
import { type Assertion, keyIdOf, keyText, signAssertion, stateOf } from '#contracts/sign-on/index.ts';
import { systemActor as monitorSystem, type Operator } from '#monitor/operators/index.ts';
import { type MonitorServer, startMonitorServer, testPassword } from '#monitor/testing/server.ts';
import { type Person, systemActor } from '#operations/accounts/index.ts';
import { createWorld, password, type World } from '#operations/testing/create-world.ts';

export interface SignOnPair extends AsyncDisposable {
  operations: World;
  monitor: MonitorServer;
  /** Another host than operations' for a browser, so that the two are different sites. */
  monitorUrl: string;
  monitorClock: TestClock;
  /** Of operations. */
  olivia: Person;
  /** Of the monitor; not linked by itself. */
  olga: Operator;
  /** Signs as operations about olivia, for the monitor and a browser with this secret; `change` is what is wrong with it. */
  assert(secret: string, change?: Partial<Assertion>, keys?: Keys): string;
  operationsKeys: Keys;
  monitorKeys: Keys;
}

export type Keys = ReturnType<typeof makeKeys>;
export const makeKeys = () => generateKeyPairSync('ed25519');
export const logins = {
  operations: { email: 'olivia@operations.test', password },
  monitor: { email: 'olga@monitor.test', password: testPassword },
};

/** `monitorSettings` are environment variables. */
export async function createSignOnPair(
  monitorSettings: Readonly<Record<string, string>> = {},
): Promise<SignOnPair> {
  const startMs = Date.now();
  const monitorClock = createTestClock(startMs);
  const operations = await createWorld({ clockStartMs: startMs });
  const monitor = await startMonitorServer(monitorSettings, { clock: monitorClock });
  const monitorUrl = monitor.url.replace('127.0.0.1', 'localhost');
  const olivia = await operations.accounts.createPerson(systemActor, {
    ...{ ...logins.operations, name: 'Olivia', staffRole: 'operator' },
  });
  // Ids of the two programs must not be mixed up unnoticed.
  for (const name of ['first', 'second'])
    await monitor.monitor.operators.add({
      ...{ email: `${name}@monitor.test`, name, password: testPassword, role: 'operator' },
    });
  const olga = await monitor.monitor.operators.add({ ...logins.monitor, name: 'Olga', role: 'operator' });
  const [operationsKeys, monitorKeys] = [makeKeys(), makeKeys()];
  await operations.signOn.setKey(systemActor, operationsKeys.privateKey);
  await monitor.monitor.signOn.setKey(monitorSystem, monitorKeys.privateKey);
  const both = { isAccepted: true, isOffered: true };
  const ofMonitor = { address: monitorUrl, publicKey: keyText(monitorKeys.publicKey), ...both };
  await operations.signOn.savePeer(systemActor, ofMonitor);
  const ofOperations = { address: operations.url, publicKey: keyText(operationsKeys.publicKey), ...both };
  await monitor.monitor.signOn.savePeer(monitorSystem, ofOperations);
  return {
    ...{ operations, monitor, monitorUrl, monitorClock, olivia, olga, operationsKeys, monitorKeys },
    assert(secret, change = {}, { privateKey, publicKey } = operationsKeys) {
      const issuedAt = Math.floor(monitorClock.nowMs() / 1000);
      const path = change.path ?? '/settings/sign-on/';
      return signAssertion(privateKey, publicKey, {
        audience: keyIdOf(monitorKeys.publicKey),
        operator_id: olivia.id,
        operator_email: olivia.email,
        issued_at: issuedAt,
        nonce: randomBytes(32).toString('base64url'),
        state: stateOf(secret, path),
        path,
        authenticated_at: issuedAt,
        second_factor: false,
        ...change,
      });
    },
    async [Symbol.asyncDispose]() {
      await monitor[Symbol.asyncDispose]();
      await operations[Symbol.asyncDispose]();
    },
  };
}

/** A browser without scripts for several servers: keeps cookies by host name alone, as browsers do, and follows nothing. */
export function openBrowser() {
  const jars = new Map<string, Map<string, string>>();
  const jarOf = (url: string) => {
    const { hostname } = new URL(url);
    const jar = jars.get(hostname) ?? new Map<string, string>();
    jars.set(hostname, jar);
    return jar;
  };
  const ask = async (url: string, fields?: Record<string, string>) => {
    const jar = jarOf(url);
    const answer = await fetch(url, {
      ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
      headers: { accept: 'text/html', cookie: [...jar].map((pair) => pair.join('=')).join('; ') },
      redirect: 'manual',
    });
    for (const line of answer.headers.getSetCookie()) {
      const [name = '', value = ''] = line.split(';')[0]!.split('=');
      if (/Max-Age=0/.test(line)) jar.delete(name);
      else jar.set(name, value);
    }
    const to = answer.headers.get('location');
    return {
      status: answer.status,
      to: to === null ? null : new URL(to, url).href,
      text: await answer.text(),
      headers: answer.headers,
    };
  };
  return {
    jarOf,
    get: (url: string) => ask(url),
    post: (url: string, fields: Record<string, string>) => ask(url, fields),
    /** Follows redirects. */
    async follow(url: string) {
      let answer = await ask(url);
      for (let hops = 0; answer.to !== null && hops < 10; hops += 1) answer = await ask(answer.to);
      return answer;
    },
  };
}
export type TestBrowser = ReturnType<typeof openBrowser>;

/** What a form of a page would send, and where to; throws when the page has no such form. */
export function formIn(text: string): { action: string; fields: Record<string, string> } {
  const [, action] = /<form class="form[^"]*" method="post" action="([^"]+)"/.exec(text) ?? [];
  if (action === undefined) throw new Error(`no form in: ${text.slice(0, 2_000)}`);
  const fields = [...text.matchAll(/<input type="hidden" name="([^"]+)" value="([^"]*)"/g)];
  return { action, fields: Object.fromEntries(fields.map(([, name, value]) => [name!, value!])) };
}
