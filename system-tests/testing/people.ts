/** Clients of the system: a person signed in to the pages, and a program with an API key. */
import { type Client, createClient } from '#clients/typescript/index.ts';
import { createAnswerChecker } from '#contracts/customer-api/testing/check-answer.ts';
import type { DemoFile, Login } from './run-demo.ts';

const checker = createAnswerChecker();

/** A person with a session cookie. */
export interface Visitor {
  cookie: { name: string; value: string };
  get(path: string): Promise<{ status: number; text: string }>;
  getJson<T>(path: string): Promise<T>;
  /**
   * Sends a form of this page to an address below it, with the page's token and version; throws unless it was accepted.
   */
  submit(path: string, action: string, fields: Readonly<Record<string, string>>): Promise<void>;
}

/** Signs in at `/sign-in` like a browser's form. Throws when the answer is not a redirect with a cookie. */
export async function signIn(url: string, login: Login): Promise<Visitor> {
  const answer = await fetch(`${url}/sign-in`, {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: url },
    body: new URLSearchParams({ email: login.email, password: login.password }),
  });
  const pair = answer.headers.getSetCookie()[0]?.split(';')[0];
  if (answer.status !== 303 || !pair) throw new Error(`sign-in answered ${answer.status}`);
  const at = pair.indexOf('=');
  const get = async (path: string) => {
    const page = await fetch(url + path, { headers: { cookie: pair }, redirect: 'manual' });
    return { status: page.status, text: await page.text() };
  };
  return {
    cookie: { name: pair.slice(0, at), value: pair.slice(at + 1) },
    get,
    async getJson<T>(path: string) {
      const { status, text } = await get(path);
      if (status !== 200) throw new Error(`${path} answered ${status}: ${text.slice(0, 200)}`);
      return JSON.parse(text) as T;
    },
    async submit(path, action, fields) {
      const { text } = await get(path);
      const hidden = ['csrf_token', 'version', 'revision', 'tenant'].flatMap((name) => {
        const value = new RegExp(`name="${name}" value="([^"]*)"`).exec(text)?.[1];
        return value === undefined ? [] : [[name, value] as [string, string]];
      });
      const answer = await fetch(`${url}${path.replace(/\/$/, '')}/${action}`, {
        method: 'POST',
        redirect: 'manual',
        headers: { cookie: pair, origin: url },
        body: new URLSearchParams([...hidden, ...Object.entries(fields)]),
      });
      await answer.arrayBuffer();
      if (answer.status !== 303) throw new Error(`${action} of ${path} answered ${answer.status}`);
    },
  };
}

/** The customer API through its own client; an answer that is not in the OpenAPI document is an error. */
export function apiOf(demo: DemoFile, key: string): Client {
  const checked: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    const { status, headers } = answer;
    checker.check({
      method: init!.method!,
      path: String(input).slice(demo.operations_url.length),
      status,
      headers: Object.fromEntries(headers),
      text: await answer.clone().text(),
    });
    return answer;
  };
  return createClient({ url: demo.operations_url, key, fetch: checked });
}

/** A minute in the JSON of the Protect page. */
export interface ProtectMinute {
  timestamp: string;
  address: string;
  inbound_bytes: number | null;
  outbound_bytes: number | null;
  coverage: number | null;
}

/** All minutes of the last hours of a server. */
export async function readMinutes(visitor: Visitor, serverId: number): Promise<ProtectMinute[]> {
  const path = `/client/servers/${serverId}/protect/minutes.json`;
  return (await visitor.getJson<{ minutes: ProtectMinute[] }>(path)).minutes;
}
