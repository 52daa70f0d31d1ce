/**
 * Passkeys (WebAuthn): registered by a signed-in person, then a sign-in of their own.
 *
 * A passkey must verify its user (a finger, a face, a PIN), so it is two factors at once. A challenge is stored, bound to
 * the person where one is known, and deleted by its first use. Errors of the library mean "refused": what a browser
 * sends is not trusted, and which check failed is not told.
 */
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { Queryable } from '#service-kit/postgres/index.ts';
import * as store from './passkey-store.ts';

/** Where a browser is: passkeys belong to a host name. */
export interface PasskeySite {
  /** `https://my.example.com`, with a port where it is not the usual one. */
  origin: string;
  /** `my.example.com`. */
  host: string;
}

/** The site of a URL; null for a bare address, on which browsers allow no passkeys. */
export function passkeySite(url: string): PasskeySite | null {
  const parsed = URL.parse(url);
  if (!parsed || parsed.hostname.startsWith('[') || /^[\d.]+$/.test(parsed.hostname)) return null;
  return { origin: parsed.origin, host: parsed.hostname };
}

// The library brings certificates and CBOR; it is loaded by the first passkey, not at start.
const library = () => import('@simplewebauthn/server');

export async function beginRegistration(
  db: Queryable,
  site: PasskeySite,
  person: { id: number; email: string; name: string },
  issuer: string,
): Promise<PublicKeyCredentialCreationOptionsJSON> {
  const { generateRegistrationOptions } = await library();
  const known = await store.listPasskeys(db, person.id);
  const options = await generateRegistrationOptions({
    rpName: issuer,
    rpID: site.host,
    userID: new TextEncoder().encode(String(person.id)),
    userName: person.email,
    userDisplayName: person.name,
    attestationType: 'none',
    excludeCredentials: known.map(({ id }) => ({ id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  await store.insertChallenge(db, options.challenge, person.id);
  return options;
}

/** Stores the passkey of a browser's answer; false when the answer is refused or the passkey is known. */
export async function finishRegistration(
  db: Queryable,
  site: PasskeySite,
  personId: number,
  name: string,
  response: unknown,
): Promise<boolean> {
  const { verifyRegistrationResponse } = await library();
  try {
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: response as RegistrationResponseJSON,
      expectedChallenge: (challenge) => store.takeChallenge(db, challenge, personId),
      expectedOrigin: site.origin,
      expectedRPID: site.host,
      requireUserVerification: true,
    });
    if (!verified || !registrationInfo) return false;
    const { id, publicKey, counter, transports = [] } = registrationInfo.credential;
    const passkey = { id, personId, publicKey: Buffer.from(publicKey), signCount: counter, transports, name };
    return await store.insertPasskey(db, passkey);
  } catch (error) {
    if (isDatabaseError(error)) throw error;
    return false;
  }
}

export async function beginAuthentication(
  db: Queryable,
  site: PasskeySite,
): Promise<PublicKeyCredentialRequestOptionsJSON> {
  const { generateAuthenticationOptions } = await library();
  const options = await generateAuthenticationOptions({ rpID: site.host, userVerification: 'required' });
  await store.insertChallenge(db, options.challenge, null);
  return options;
}

/** The person whose passkey signed; null when the answer is refused. */
export async function finishAuthentication(
  db: Queryable,
  site: PasskeySite,
  response: unknown,
): Promise<number | null> {
  const { verifyAuthenticationResponse } = await library();
  const id = (response as { id?: unknown } | null)?.id;
  const known = typeof id === 'string' && !id.includes('\0') ? await store.findPasskey(db, id) : null;
  if (known === null) return null;
  try {
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: response as AuthenticationResponseJSON,
      expectedChallenge: (challenge) => store.takeChallenge(db, challenge, null),
      expectedOrigin: site.origin,
      expectedRPID: site.host,
      requireUserVerification: true,
      credential: { id: known.id, publicKey: new Uint8Array(known.publicKey), counter: known.signCount },
    });
    if (!verified) return null;
    await store.noteUse(db, known.id, authenticationInfo.newCounter);
    return known.personId;
  } catch (error) {
    if (isDatabaseError(error)) throw error;
    return null;
  }
}

/** PostgreSQL's errors and lost connections have a code or a syscall; the library's have neither. */
function isDatabaseError(error: unknown): boolean {
  const { severity, syscall } = error as { severity?: unknown; syscall?: unknown };
  return severity !== undefined || syscall !== undefined;
}
