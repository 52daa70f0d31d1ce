/**
 * Second factors: an authenticator app (TOTP, RFC 6238), passkeys (WebAuthn), and recovery codes.
 *
 * A code of an app is accepted once, and a recovery code is deleted by its use. Codes and passkeys are compared here;
 * how often they may be tried is limited by the sign-in pages. Adding the first factor makes recovery codes, removing
 * the last one deletes them.
 */

import { deleteSteps, totpSecret } from './store.ts';

export type { PasskeySummary } from './passkey-store.ts';
export { type PasskeySite, passkeySite } from './passkeys.ts';
export {
  createSecondFactors,
  type FactorState,
  removeSecondFactors,
  type SecondFactors,
} from './second-factors.ts';

/** Ends sign-ins of a person that wait for the second factor, within the transaction of what makes them invalid. */
export const endSteps = deleteSteps;

/** Where second factors keep sealed secrets. */
export const factorSecrets = [totpSecret] as const;
