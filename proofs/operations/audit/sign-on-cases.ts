/** What changes of single sign-on leave in the audit trail of operations. */
import { systemActor } from '#operations/accounts/index.ts';
import { peerFields, plantAnswer, plantPeer } from '#service-kit/sign-on/testing/plant-sign-on.ts';
import type { Cases } from './case.ts';

export const signOnCases: Cases = {
  'POST /console/sign-on/key': [
    'sign_on.create_key',
    ({ operated }) => operated.post('/console/sign-on/key', {}),
  ],
  'POST /console/sign-on/peer': [
    'sign_on.save_peer',
    async ({ operated, world }) => {
      await world.signOn.createKey(systemActor);
      return operated.post('/console/sign-on/peer', peerFields());
    },
  ],
  'POST /console/sign-on/link': [
    'sign_on.link_account',
    async ({ operated, world, staff }) => {
      await plantPeer(world.signOn, systemActor);
      return operated.post('/console/sign-on/link', { subject: '900', person: String(staff.id) });
    },
  ],
  'POST /console/sign-on/unlink': [
    'sign_on.unlink_account',
    async ({ operated, world, staff }) => {
      await plantPeer(world.signOn, systemActor);
      await world.signOn.linkAccount(systemActor, { subjectId: 900, personId: staff.id });
      return operated.post('/console/sign-on/unlink', { subject: '900' });
    },
  ],
  'POST /sign-on/link': [
    'sign_on.link_account',
    async ({ world, staff }) => {
      const session = await world.signIn(staff.email);
      const { csrfToken } = (await world.sessions.read(session))!;
      const cookies = await plantAnswer(world.signOn, systemActor, 'svc_operations', world.clock.nowMs());
      return fetch(`${world.url}/sign-on/link`, {
        method: 'POST',
        headers: { accept: 'text/html', cookie: `${session}; ${cookies}` },
        body: new URLSearchParams({ csrf_token: csrfToken }),
        redirect: 'manual',
      });
    },
  ],
};
