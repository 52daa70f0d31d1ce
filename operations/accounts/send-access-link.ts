/** Links that let a person set a password, and how they reach that person. */
import { createAccessLink } from '#service-kit/access-links/index.ts';
import { record } from '#service-kit/audit/index.ts';
import type { Delivery, Post } from '#service-kit/mail/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { accessLinkMail } from '#service-kit/sign-in/index.ts';
import { invalid, type Person } from './account.ts';
import { type Actor, requireOperator } from './actor.ts';
import * as store from './store.ts';

/** An invitation waits for days; the person of a forgotten password sits before the mailbox. */
export const firstLinkHours = 72;

/** Operators only: mails a person a link to set a new password. The old one works until the link is used. */
export async function sendAccessLink(
  db: Queryable,
  post: Post,
  actor: Actor,
  personId: number,
): Promise<Delivery> {
  requireOperator(actor);
  const person = await store.findPerson(db, personId);
  if (!person?.isActive) throw invalid('This person is deactivated. Activate them first.');
  const secret = await inTransaction(db, async (trx) => {
    const subject = { kind: 'person', id: personId, name: person.email };
    await record(trx, actor, { operation: 'person.send_password_link', subject });
    return createAccessLink(trx, personId, firstLinkHours);
  });
  return deliverAccessLink(post, person, secret);
}

/**
 * Mails a link. Where no mail can be sent it is for the operator who asked to hand over; it is never given to a
 * customer, who could name an address that is not theirs.
 */
export async function deliverAccessLink(
  post: Post,
  person: Pick<Person, 'email' | 'name'>,
  secret: string,
): Promise<Delivery> {
  const url = post.linkTo(`/set-password/${secret}`);
  if (!post.canSend) return { kind: 'shown', to: person.email, url };
  const reason = await post.send(accessLinkMail(person, url, `${firstLinkHours} hours`));
  return reason === null
    ? { kind: 'mailed', to: person.email }
    : { kind: 'failed', to: person.email, reason };
}
