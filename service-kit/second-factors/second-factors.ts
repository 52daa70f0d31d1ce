import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '#common/clock/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import * as passkeyStore from './passkey-store.ts';
import * as passkeys from './passkeys.ts';
import { createRecoveryCodes, digestRecoveryCode } from './recovery-codes.ts';
import * as store from './store.ts';
import { createTotpSecret, stepOfCode, totpUri } from './totp.ts';

export interface SecondFactorsDeps {
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
export type CodeKind = 'totp' | 'recovery';

export interface SecondFactors {
  stateOf(personId: number): Promise<FactorState>;
  /** A new shared secret, not in use until a code of it was confirmed; null when the person has an app already. */
  beginTotp(personId: number, email: string): Promise<{ secret: string; uri: string } | null>;
  /** The secret that waits to be confirmed, to be shown again after a wrong code. */
  pendingTotp(personId: number, email: string): Promise<{ secret: string; uri: string } | null>;
  /** Puts the app in use. `codes` are new recovery codes when it is the first factor. Null for a wrong code. */
  confirmTotp(personId: number, code: string): Promise<{ codes: readonly string[] | null } | null>;
  /** False when there was none. */
  removeTotp(personId: number): Promise<boolean>;
  /** Whether a text is a code of the app or a recovery code; either is used up by it. Limit how often this is asked. */
  takeCode(personId: number, text: string): Promise<CodeKind | null>;
  /** Recovery codes that take the place of all earlier ones. */
  renewRecoveryCodes(personId: number): Promise<readonly string[]>;
  listPasskeys(personId: number): Promise<passkeyStore.PasskeySummary[]>;
  /** What a browser needs to make a passkey for this person. */
  beginPasskey(
    site: passkeys.PasskeySite,
    person: { id: number; email: string; name: string },
  ): Promise<object>;
  /** Adds the passkey of a browser's answer, as JSON. `codes` as for an app. Null when the answer is refused. */
  addPasskey(
    site: passkeys.PasskeySite,
    personId: number,
    name: string,
    answer: string,
  ): Promise<{ codes: readonly string[] | null } | null>;
  /** False when the person has no such passkey. */
  removePasskey(personId: number, id: string): Promise<boolean>;
  /** What a browser needs to sign by any passkey of this site. */
  beginPasskeySignIn(site: passkeys.PasskeySite): Promise<object>;
  /** The person whose passkey signed a browser's answer, as JSON; null when it is refused. A challenge works once. */
  takePasskey(site: passkeys.PasskeySite, answer: string): Promise<number | null>;
  /** Notes that this browser has shown the password; the secret for its cookie, good for ten minutes. */
  beginStep(personId: number): Promise<string>;
  /** The person of such a secret, or null. */
  findStep(secret: string): Promise<number | null>;
  endStep(secret: string): Promise<void>;
}

export function createSecondFactors(deps: SecondFactorsDeps): SecondFactors {
  const { db, clock, secrets, issuer } = deps;

  const openTotp = async (from: Queryable, personId: number, { sealed }: store.StoredTotp) =>
    (await secrets.open(from, store.totpSecret, personId, sealed)).toString();
  const takeTotp = async (personId: number, isConfirmed: boolean, code: string): Promise<boolean> => {
    await secrets.ready();
    return db()
      .transaction()
      .execute(async (trx) => {
        const totp = await store.lockTotp(trx, personId);
        if (totp === null || totp.isConfirmed !== isConfirmed) return false;
        const step = stepOfCode(await openTotp(trx, personId, totp), code, clock.nowMs());
        if (step === null || step <= totp.lastStep) return false;
        await store.writeTotpStep(trx, personId, step);
        return true;
      });
  };
  /** Recovery codes stand in for a factor, so they go with the last one. */
  const removing = (personId: number, remove: (tx: Queryable) => Promise<boolean>) =>
    db()
      .transaction()
      .execute(async (tx) => {
        const isGone = await remove(tx);
        if (!(await stateOf(tx, personId)).hasAny) await store.replaceRecoveryCodes(tx, personId, []);
        return isGone;
      });
  const newCodes = async (tx: Queryable, personId: number) => {
    const codes = createRecoveryCodes();
    await store.replaceRecoveryCodes(tx, personId, codes.map(digestRecoveryCode));
    return codes;
  };
  return {
    stateOf: (personId) => stateOf(db(), personId),
    async beginTotp(personId, email) {
      const secret = createTotpSecret();
      await secrets.ready();
      const isNew = await db()
        .transaction()
        .execute(async (trx) =>
          store.insertTotp(trx, personId, await secrets.seal(trx, store.totpSecret, personId, secret)),
        );
      return isNew ? { secret, uri: totpUri(secret, issuer, email) } : null;
    },
    async pendingTotp(personId, email) {
      await secrets.ready();
      const totp = await store.findTotp(db(), personId);
      if (totp === null || totp.isConfirmed) return null;
      const secret = await openTotp(db(), personId, totp);
      return { secret, uri: totpUri(secret, issuer, email) };
    },
    async confirmTotp(personId, code) {
      const before = await stateOf(db(), personId);
      if (!(await takeTotp(personId, false, code))) return null;
      if (before.hasAny) return { codes: null };
      return {
        codes: await db()
          .transaction()
          .execute((tx) => newCodes(tx, personId)),
      };
    },
    removeTotp: (personId) => removing(personId, (tx) => store.deleteTotp(tx, personId)),
    async takeCode(personId, text) {
      if (await takeTotp(personId, true, text)) return 'totp';
      return (await store.takeRecoveryCode(db(), personId, digestRecoveryCode(text))) ? 'recovery' : null;
    },
    renewRecoveryCodes: (personId) =>
      db()
        .transaction()
        .execute((tx) => newCodes(tx, personId)),
    listPasskeys: (personId) => passkeyStore.listPasskeys(db(), personId),
    beginPasskey: (site, person) => passkeys.beginRegistration(db(), site, person, issuer),
    async addPasskey(site, personId, name, answer) {
      const before = await stateOf(db(), personId);
      if (!(await passkeys.finishRegistration(db(), site, personId, name, parseJson(answer)))) return null;
      if (before.hasAny) return { codes: null };
      return {
        codes: await db()
          .transaction()
          .execute((tx) => newCodes(tx, personId)),
      };
    },
    removePasskey: (personId, id) => removing(personId, (tx) => passkeyStore.deletePasskey(tx, personId, id)),
    beginPasskeySignIn: (site) => passkeys.beginAuthentication(db(), site),
    takePasskey: (site, answer) => passkeys.finishAuthentication(db(), site, parseJson(answer)),
    async beginStep(personId) {
      const secret = randomBytes(32).toString('base64url');
      await store.insertStep(db(), digestOf(secret), personId);
      return secret;
    },
    findStep: (secret) => store.findStep(db(), digestOf(secret)),
    endStep: (secret) => store.deleteStep(db(), digestOf(secret)),
  };
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
