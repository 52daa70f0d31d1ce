import { createAccessLink } from '#service-kit/access-links/index.ts';
import type { Mail, Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { foldEmail, type Sessions } from '#service-kit/sessions/index.ts';
import { resetMail } from './mails.ts';
import type { SignInPeople } from './people.ts';

/** Requests of one source in ten minutes. */
export const requestsPerSourceMax = 20;
/** Mails to one address in ten minutes, so that strangers can't fill a mailbox. */
const mailsPerAddressMax = 3;
const linkHours = 1;

/** The mail with a link for the person of this address; null when there is none, or when they were mailed enough. */
export async function requestReset(
  deps: {
    db: () => Queryable;
    people: SignInPeople;
    sessions: Sessions;
    post: Post;
  },
  email: string,
): Promise<Mail | null> {
  const person = await deps.people.findByEmail(foldEmail(email));
  if (person === null) return null;
  if (!(await deps.sessions.countUse(`reset-person:${person.id}`, mailsPerAddressMax))) return null;
  const secret = await createAccessLink(deps.db(), person.id, linkHours);
  return resetMail(person, deps.post.linkTo(`/set-password/${secret}`));
}
