/**
 * One-time links that let a person set a password: after an invitation, and when a password is forgotten.
 *
 * The database holds the digest of a link's secret. A link works once and until its time; a newer link of the same
 * person ends the older ones. Opening a link changes nothing, because mail scanners open links.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

/** Makes a link's secret, which is in this answer alone; earlier links of the person stop working. */
export async function createAccessLink(db: Queryable, personId: number, hours: number): Promise<string> {
  const secret = randomBytes(32).toString('base64url');
  await store.replaceLinks(db, personId, digestOf(secret), hours);
  return secret;
}

/** The person of a link that works; null for every other text. */
export function findAccessLink(db: Queryable, secret: string): Promise<number | null> {
  return store.findLink(db, digestOf(secret));
}

/** Uses a link up; null when it does not work. Of two at once, one gets it. */
export function takeAccessLink(tx: Queryable, secret: string): Promise<number | null> {
  return store.takeLink(tx, digestOf(secret));
}

/** Ends a person's links. */
export function endAccessLinks(db: Queryable, personId: number): Promise<void> {
  return store.deleteLinks(db, personId);
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}
