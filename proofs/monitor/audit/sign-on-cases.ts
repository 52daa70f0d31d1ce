/** What changes of single sign-on leave in the monitor's audit trail. */
import { systemActor } from '#monitor/operators/index.ts';
import { peerFields, plantAnswer, plantPeer } from '#service-kit/sign-on/testing/plant-sign-on.ts';
import type { Case, Stage } from './stage.ts';

/** A person who is not linked, at a peer that is set up. */
async function plantPerson({ monitor, colleague }: Stage): Promise<{ subject: string; person: string }> {
  await plantPeer(monitor.signOn, systemActor);
  return { subject: '900', person: String((await colleague()).id) };
}

export const signOnCases: Readonly<Record<string, Case>> = {
  'POST /settings/sign-on/key': [
    'sign_on.create_key',
    ({ operator }) => operator.post('/settings/sign-on/key'),
  ],
  'POST /settings/sign-on/peer': [
    'sign_on.save_peer',
    async ({ operator, monitor }) => {
      await monitor.signOn.createKey(systemActor);
      return operator.post('/settings/sign-on/peer', peerFields());
    },
  ],
  'POST /settings/sign-on/link': [
    'sign_on.link_account',
    async (stage) => stage.operator.post('/settings/sign-on/link', await plantPerson(stage)),
  ],
  'POST /settings/sign-on/unlink': [
    'sign_on.unlink_account',
    async (stage) => {
      const { subject, person } = await plantPerson(stage);
      await stage.monitor.signOn.linkAccount(systemActor, {
        subjectId: Number(subject),
        personId: Number(person),
      });
      return stage.operator.post('/settings/sign-on/unlink', { subject });
    },
  ],
  'POST /sign-on/link': [
    'sign_on.link_account',
    async ({ monitor, server, operator }) => {
      const cookies = await plantAnswer(monitor.signOn, systemActor, 'svc_monitor');
      const answer = await fetch(`${server.url}/sign-on/link`, {
        method: 'POST',
        headers: { accept: 'text/html', cookie: `${operator.cookie}; ${cookies}` },
        body: new URLSearchParams({ csrf_token: operator.csrfToken }),
        redirect: 'manual',
      });
      return { status: answer.status, headers: answer.headers, text: await answer.text() };
    },
  ],
};
