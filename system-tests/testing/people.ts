/** People and programs that use the system: somebody signed in to the pages, somebody with an API key. */
import { createAnswerChecker } from '#contracts/customer-api/testing/check-answer.ts';
import type { DemoFile, Login } from './run-demo.ts';

const checker = createAnswerChecker();

/** A person with a session cookie. */
export interface Visitor {
  cookie: { name: string; value: string };
  get(path: string): Promise<{ status: number; text: string }>;
  getJson<T>(path: string): Promise<T>;
}

/** Signs in at `/sign-in` as a browser's form does; throws when the answer is no redirect with a cookie. */
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
  };
}

/** Calls the customer API with a key; an answer that its OpenAPI document does not know is an error. */
export async function callApi<T>(
  demo: DemoFile,
  key: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: T }> {
  const whole = `/api/v1${path}`;
  const answer = await fetch(demo.operations_url + whole, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body ? { 'content-type': 'application/json' } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const text = await answer.text();
  const { status, headers } = answer;
  checker.check({ method, path: whole, status, headers: Object.fromEntries(headers), text });
  return { status, body: (text ? JSON.parse(text) : null) as T };
}

export interface ServerView {
  id: number;
  name: string;
  status: string;
  root_password?: string;
  public_ips: { address: string; family: number }[];
}

/** A minute as the Protect page's JSON shows it. */
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
