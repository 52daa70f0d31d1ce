/** A program that trusts another one whose key the test holds, and what a browser has after an assertion of that one. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { keyIdOf, keyText, parseKeyText, signAssertion, stateOf } from '#contracts/sign-on/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { SignOn } from '../sign-on.ts';

/** Fields of the form that sets up such a peer; its key is new each time. */
export const peerFields = () => ({
  address: 'https://other.example',
  public_key: keyText(generateKeyPairSync('ed25519').publicKey),
  is_accepted: 'on',
});

/** The program's own key and a peer, so that accounts can be linked. */
export async function plantPeer<Actor extends AuditActor>(signOn: SignOn<Actor>, actor: Actor) {
  const keys = generateKeyPairSync('ed25519');
  await signOn.createKey(actor);
  const publicKey = keyText(keys.publicKey);
  await signOn.savePeer(actor, {
    address: 'https://other.example',
    publicKey,
    isAccepted: true,
    isOffered: false,
  });
  return keys;
}

/** The cookies of a browser that has brought an assertion about an operator who is not linked. */
export async function plantAnswer<Actor extends AuditActor>(
  signOn: SignOn<Actor>,
  actor: Actor,
  cookieName: string,
  nowMs = Date.now(),
): Promise<string> {
  const { privateKey, publicKey } = await plantPeer(signOn, actor);
  const secret = randomBytes(32).toString('base64url');
  const issuedAt = Math.floor(nowMs / 1000);
  const assertion = signAssertion(privateKey, publicKey, {
    audience: keyIdOf(parseKeyText((await signOn.view()).publicKey!)!),
    operator_id: 7,
    operator_email: 'other@other.example',
    issued_at: issuedAt,
    nonce: randomBytes(32).toString('base64url'),
    state: stateOf(secret, '/'),
    path: '/',
    authenticated_at: issuedAt,
    second_factor: false,
  });
  const accepted = await signOn.accept(assertion);
  if ('refused' in accepted) throw new Error(accepted.refused);
  return `${cookieName}_sign_on=${secret}; ${cookieName}_ticket=${accepted.ticket}`;
}
