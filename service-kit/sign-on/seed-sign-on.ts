/** Trust and linked accounts of a demo world, as the program that starts both consoles hands them over. */
import { createPrivateKey } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { CodedError } from '#common/errors/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { SignOn } from './sign-on.ts';

const Seed = Type.Object({
  /** The key of this program, PKCS #8 in base64. */
  key: Type.String(),
  address: Type.String(),
  /** Of the other program. */
  public_key: Type.String(),
  /** Operators of the other program, and which people here they are. */
  accounts: Type.Array(Type.Object({ id: Type.Integer({ minimum: 1 }), email: Type.String() })),
});
export type SignOnSeed = Static<typeof Seed>;

/**
 * Sets up what was not set up before: later changes by people stay. `text` is a `SignOnSeed` as JSON. Throws
 * `config.invalid` for any other text.
 */
export async function seedSignOn<Actor extends AuditActor>(
  signOn: SignOn<Actor>,
  actor: Actor,
  text: string,
  findPerson: (email: string) => Promise<{ id: number } | null>,
): Promise<void> {
  if ((await signOn.view()).peer !== null) return;
  const { key, address, public_key: publicKey, accounts } = parseSeed(text);
  await signOn.setKey(
    actor,
    createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' }),
  );
  await signOn.savePeer(actor, { address, publicKey, isAccepted: true, isOffered: true });
  for (const { id: subjectId, email } of accounts) {
    const person = await findPerson(email);
    if (person) await signOn.linkAccount(actor, { subjectId, personId: person.id });
  }
}

function parseSeed(text: string): SignOnSeed {
  try {
    const seed: unknown = JSON.parse(text);
    if (Value.Check(Seed, seed)) return seed;
  } catch {
    // The same sentence as for JSON of another shape.
  }
  throw new CodedError('config.invalid', 'SVC_DEMO_SIGN_ON does not describe a single sign-on.');
}
