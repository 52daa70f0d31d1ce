import { type Actor, forbidden, reachesTenant } from '#operations/accounts/index.ts';

/** The server of a page or a call; the caller has looked it up for this actor. */
export interface Subject {
  serverId: number;
  tenantId: number;
}

/** One address only; null or absent for all that the server has or had. */
export interface AddressSubject extends Subject {
  address?: string | null;
}

/** Throws `accounts.forbidden` for a server of another account. The rows are filtered by tenant and server in the query as well. */
export function reached<Of extends Subject>(actor: Actor, subject: Of): Of {
  if (!reachesTenant(actor, subject.tenantId)) throw forbidden('This server belongs to another account.');
  return subject;
}

export function reachedAddress(actor: Actor, subject: AddressSubject): Required<AddressSubject> {
  const { serverId, tenantId, address = null } = reached(actor, subject);
  return { serverId, tenantId, address };
}
