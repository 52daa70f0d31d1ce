/** Steps of single sign-on at the monitor, as tests take them one by one. */
import assert from 'node:assert/strict';
import { systemActor } from '#monitor/operators/index.ts';
import { openBrowser, type SignOnPair, type TestBrowser } from './sign-on-pair.ts';

/** The page that a sign-on begins with. */
export const target = '/settings/sign-on/';
export const secretCookie = 'svc_monitor_sign_on';

/** At the monitor the operator of operations is linked to theirs, and no one else. */
export async function linkAgain(pair: SignOnPair): Promise<void> {
  const { signOn } = pair.monitor.monitor;
  for (const { subjectId } of (await signOn.view()).accounts)
    await signOn.unlinkAccount(systemActor, subjectId);
  await signOn.linkAccount(systemActor, { subjectId: pair.olivia.id, personId: pair.olga.id });
}

/** A browser that has begun at the monitor, with the secret that it got. */
export async function begin(
  pair: SignOnPair,
  path = target,
): Promise<{ browser: TestBrowser; secret: string; asked: URL }> {
  const browser = openBrowser();
  const { status, to } = await browser.get(`${pair.monitorUrl}/sign-on?to=${encodeURIComponent(path)}`);
  assert.equal(status, 303);
  return { browser, secret: browser.jarOf(pair.monitorUrl).get(secretCookie)!, asked: new URL(to!) };
}

/** Brings an assertion to the monitor; the answer after all redirects. */
export async function bring(pair: SignOnPair, browser: TestBrowser, assertion: string) {
  const answer = await browser.post(`${pair.monitorUrl}/sign-on/answer`, { assertion });
  return answer.to === null ? answer : browser.follow(answer.to);
}

export const isSignedIn = async (pair: SignOnPair, browser: TestBrowser): Promise<boolean> =>
  (await browser.get(`${pair.monitorUrl}${target}`)).status === 200;
