/**
 * Second factors: an authenticator app (TOTP, RFC 6238), passkeys (WebAuthn), and recovery codes.
 *
 * A code of an app is accepted once, and a recovery code is deleted by its use. Codes and passkeys are compared here;
 * how often they may be tried is limited by the sign-in pages. Adding the first factor makes recovery codes, removing
 * the last one deletes them.
 */

import { createHash, randomBytes, randomInt } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import type { Clock } from '#common/clock/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import * as passkeyStore from './passkey-store.ts';
import * as passkeys from './passkeys.ts';
import * as store from './store.ts';
import { deleteSteps, totpSecret } from './store.ts';

export type { PasskeySummary } from './passkey-store.ts';
export { type PasskeySite, passkeySite } from './passkeys.ts';

/** Ends sign-ins of a person that wait for the second factor, within the transaction of what makes them invalid. */
export const endSteps = deleteSteps;

/** Where second factors keep sealed secrets. */
export const factorSecrets = [totpSecret] as const;

interface SecondFactorsDeps {
  db: () => Queryable;
  clock: Clock;
  secrets: Secrets;
  /** Named by authenticator apps, such as "svc monitor". */
  issuer: string;
}

export interface FactorState extends store.FactorCounts {
  /** Any factor but recovery codes. */
  hasAny: boolean;
}

/** What was proved by a code. */
type CodeKind = 'totp' | 'recovery';

export type SecondFactors = ReturnType<typeof createSecondFactors>;

export function createSecondFactors(deps: SecondFactorsDeps) {
  const { db } = deps;
  return {
    stateOf: (personId: number) => stateOf(db(), personId),
    ...appFactor(deps),
    ...passkeyFactor(deps),
    ...stepSecrets(deps),
    /** Whether a text is a code of the app or a recovery code; either is used up by it. Limit how often this is asked. */
    async takeCode(personId: number, text: string): Promise<CodeKind | null> {
      if (await takeTotp(deps, personId, true, text)) return 'totp';
      return (await store.takeRecoveryCode(db(), personId, digestRecoveryCode(text))) ? 'recovery' : null;
    },
    /** Recovery codes that take the place of all earlier ones. */
    renewRecoveryCodes: (personId: number) => renewRecoveryCodes(db(), personId),
  };
}

/** The authenticator app. */
function appFactor(deps: SecondFactorsDeps) {
  const { db, secrets, issuer } = deps;
  return {
    /** A new shared secret, not in use until a code of it was confirmed; null when the person has an app already. */
    async beginTotp(personId: number, email: string): Promise<{ secret: string; uri: string } | null> {
      const secret = createTotpSecret();
      await secrets.ready();
      const isNew = await inTransaction(db(), async (trx) =>
        store.insertTotp(trx, personId, await secrets.seal(trx, store.totpSecret, personId, secret)),
      );
      return isNew ? { secret, uri: totpUri(secret, issuer, email) } : null;
    },
    /** The secret that waits to be confirmed, to be shown again after a wrong code. */
    async pendingTotp(personId: number, email: string): Promise<{ secret: string; uri: string } | null> {
      await secrets.ready();
      const totp = await store.findTotp(db(), personId);
      if (totp === null || totp.isConfirmed) return null;
      const secret = await openTotp(secrets, db(), personId, totp);
      return { secret, uri: totpUri(secret, issuer, email) };
    },
    /** Puts the app in use. `codes` are new recovery codes when it is the first factor. Null for a wrong code. */
    confirmTotp: (personId: number, code: string) =>
      adding(db(), personId, () => takeTotp(deps, personId, false, code)),
    /** False when there was none. */
    removeTotp: (personId: number) => removing(db(), personId, (tx) => store.deleteTotp(tx, personId)),
  };
}

function passkeyFactor({ db, issuer }: SecondFactorsDeps) {
  return {
    listPasskeys: (personId: number) => passkeyStore.listPasskeys(db(), personId),
    /** What a browser needs to make a passkey for this person. */
    beginPasskey: (
      site: passkeys.PasskeySite,
      person: { id: number; email: string; name: string },
    ): Promise<object> => passkeys.beginRegistration(db(), site, person, issuer),
    /** Adds the passkey of a browser's answer, as JSON. `codes` as for an app. Null when the answer is refused. */
    addPasskey: (site: passkeys.PasskeySite, personId: number, name: string, answer: string) =>
      adding(db(), personId, () =>
        passkeys.finishRegistration(db(), site, personId, name, parseJson(answer)),
      ),
    /** False when the person has no such passkey. */
    removePasskey: (personId: number, id: string) =>
      removing(db(), personId, (tx) => passkeyStore.deletePasskey(tx, personId, id)),
    /** What a browser needs to sign by any passkey of this site. */
    beginPasskeySignIn: (site: passkeys.PasskeySite): Promise<object> =>
      passkeys.beginAuthentication(db(), site),
    /** The person whose passkey signed a browser's answer, as JSON; null when it is refused. A challenge works once. */
    takePasskey: (site: passkeys.PasskeySite, answer: string) =>
      passkeys.finishAuthentication(db(), site, parseJson(answer)),
  };
}

/** The time between the password and the second factor. */
function stepSecrets({ db }: SecondFactorsDeps) {
  return {
    /** Notes that this browser has shown the password; the secret for its cookie, good for ten minutes. */
    async beginStep(personId: number): Promise<string> {
      const secret = randomBytes(32).toString('base64url');
      await store.insertStep(db(), digestOf(secret), personId);
      return secret;
    },
    /** The person of such a secret, or null. */
    findStep: (secret: string) => store.findStep(db(), digestOf(secret)),
    endStep: (secret: string) => store.deleteStep(db(), digestOf(secret)),
  };
}

async function openTotp(secrets: Secrets, from: Queryable, personId: number, { sealed }: store.StoredTotp) {
  return (await secrets.open(from, store.totpSecret, personId, sealed)).toString();
}

/** Whether this is a code of the person's app (in use, or waiting to be confirmed) that was not used before. */
async function takeTotp(
  { db, clock, secrets }: SecondFactorsDeps,
  personId: number,
  isConfirmed: boolean,
  code: string,
): Promise<boolean> {
  await secrets.ready();
  return inTransaction(db(), async (trx) => {
    const totp = await store.lockTotp(trx, personId);
    if (totp === null || totp.isConfirmed !== isConfirmed) return false;
    const step = stepOfCode(await openTotp(secrets, trx, personId, totp), code, clock.nowMs());
    if (step === null || step <= totp.lastStep) return false;
    await store.writeTotpStep(trx, personId, step);
    return true;
  });
}

/** Recovery codes come with the first factor. */
async function adding(
  db: Queryable,
  personId: number,
  add: () => Promise<boolean>,
): Promise<{ codes: readonly string[] | null } | null> {
  const before = await stateOf(db, personId);
  if (!(await add())) return null;
  return { codes: before.hasAny ? null : await renewRecoveryCodes(db, personId) };
}

/** Recovery codes stand in for a factor, so they go with the last one. */
function removing(db: Queryable, personId: number, remove: (tx: Queryable) => Promise<boolean>) {
  return inTransaction(db, async (tx) => {
    const isGone = await remove(tx);
    if (!(await stateOf(tx, personId)).hasAny) await store.replaceRecoveryCodes(tx, personId, []);
    return isGone;
  });
}

function renewRecoveryCodes(db: Queryable, personId: number): Promise<readonly string[]> {
  return inTransaction(db, async (tx) => {
    const codes = createRecoveryCodes();
    await store.replaceRecoveryCodes(tx, personId, codes.map(digestRecoveryCode));
    return codes;
  });
}

/** Takes all second factors of a person away, within the transaction of what makes that right. */
export async function removeSecondFactors(tx: Queryable, personId: number): Promise<void> {
  await store.deleteTotp(tx, personId);
  await store.deletePasskeys(tx, personId);
  await store.replaceRecoveryCodes(tx, personId, []);
  await store.deleteSteps(tx, personId);
}

async function stateOf(db: Queryable, personId: number): Promise<FactorState> {
  const counts = await store.countFactors(db, personId);
  return { ...counts, hasAny: counts.hasTotp || counts.passkeys > 0 };
}

/** Null for what is no JSON: a browser's answer is not trusted. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** How many a person gets at a time. */
const recoveryCodesMax = 8;
const alphabet = 'abcdefghijkmnpqrstuvwxyz23456789';
const groups = 4;
const groupLength = 6;

/** Codes of 120 random bits each, in groups for reading; no letter that looks like a digit. */
function createRecoveryCodes(): string[] {
  return Array.from({ length: recoveryCodesMax }, () =>
    Array.from({ length: groups }, () =>
      Array.from({ length: groupLength }, () => alphabet[randomInt(alphabet.length)]).join(''),
    ).join('-'),
  );
}

/** SHA-256 of the code without spaces, dashes and capitals, as people copy it. */
function digestRecoveryCode(text: string): Buffer {
  return createHash('sha256')
    .update(text.toLowerCase().replace(/[^a-z0-9]/g, ''))
    .digest();
}

/** Time-based one-time passwords: SHA-1, six digits, 30 seconds, which every authenticator app reads. */
const periodMs = 30_000;
/** Steps before and after now that are accepted, for clocks that are a little off. */
const stepsOff = 1;

/** A new shared secret of 160 bits in Base32. */
function createTotpSecret(): string {
  return new Secret({ size: 20 }).base32;
}

/** The URI that an authenticator app reads from a QR code. */
function totpUri(secret: string, issuer: string, label: string): string {
  return totpOf(secret, { issuer, label }).toString();
}

/** The 30-second step that a code belongs to; null for a code that is wrong now. Comparison takes constant time. */
function stepOfCode(secret: string, code: string, nowMs: number): number | null {
  const token = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(token)) return null;
  const delta = totpOf(secret, {}).validate({ token, timestamp: nowMs, window: stepsOff });
  return delta === null ? null : Math.floor(nowMs / periodMs) + delta;
}

function totpOf(secret: string, names: { issuer?: string; label?: string }): TOTP {
  return new TOTP({
    ...names,
    algorithm: 'SHA1',
    digits: 6,
    period: periodMs / 1000,
    secret: Secret.fromBase32(secret),
  });
}
