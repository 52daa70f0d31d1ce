/**
 * The connection to operations: base URL, token, enabled flag, automatic import, permissions of the token's project,
 * and the secret of destroy notices.
 *
 * Token and secret can be written but not read: pages get a view without them. Disabling stops imports and feeds.
 * Destroy notices are still accepted (NET-4.7), because operations sends them.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { CodedError, hasCode } from '#common/errors/index.ts';
import type { Capabilities } from '#contracts/admin-api/contract.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { recorded } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecretColumn, Secrets } from '#service-kit/secrets/index.ts';
import { createOperationsClient, type OperationsClient, safeFaultText } from './client.ts';
import { type ConnectionView, parseBaseUrl, parseToken, type SaveConnectionInput } from './connection.ts';
import * as store from './store.ts';

export {
  concernsEveryCall,
  type OperationsClient,
  OperationsError,
  type OperationsFault,
  safeFaultText,
} from './client.ts';
export type { ConnectionView } from './connection.ts';
export type { NoticeSecretStatus } from './store.ts';

/** Columns with sealed secrets of the connection. */
export const connectionSecrets = [store.connectionToken, store.noticeSecret] as const;

/** An enabled connection that can be called. */
export interface OpenConnection {
  client: OperationsClient;
  isSyncAutomatic: boolean;
  capabilities: Capabilities;
  /** Grows when the base URL or the token changes. */
  revision: number;
  /** When discovery last succeeded or failed, null for never. */
  checkedAtMs: number | null;
}

export type Connection = ReturnType<typeof createConnection>;

interface ConnectionDeps {
  db: () => Queryable;
  secrets: Secrets;
  /** Replaces the client in tests of failures. */
  createClient?: (connection: { baseUrl: string; token: string }) => OperationsClient;
  /** Operations may be called by http on another machine. */
  allowsInsecureHttp?: boolean;
}

const noticeSecretLengthMin = 24;

export function createConnection(deps: ConnectionDeps) {
  const { db, secrets, allowsInsecureHttp = false } = deps;
  const createClient =
    deps.createClient ?? ((connection) => createOperationsClient({ ...connection, allowsInsecureHttp }));
  const saveNoticeSecret = async (actor: Actor, secret: string) => {
    await secrets.ready();
    await recorded(db(), actor, noticeEntry, (trx) => writeNoticeSecret(trx, secrets, secret));
  };
  return {
    /** Null before the first save. */
    async view(): Promise<ConnectionView | null> {
      const stored = await store.readConnection(db());
      if (!stored) return null;
      const { sealedToken: _, revision: __, ...view } = stored;
      return view;
    },
    /** Throws `connection.invalid`; the first save needs a token. */
    async save(actor: Actor, input: SaveConnectionInput) {
      requireOperator(actor);
      await writeRecorded(deps, actor, await parseInput(deps, input));
    },
    /** Runs discovery with the new values and saves them only if it succeeds. Also throws `OperationsError`. */
    async testAndSave(actor: Actor, input: SaveConnectionInput) {
      requireOperator(actor);
      const parsed = await parseInput(deps, input);
      await createClient(parsed).discover();
      await writeRecorded(deps, actor, parsed);
      await checkConnection(db(), secrets, createClient);
    },
    /**
     * Runs discovery now (NET-4.l). Throws `OperationsError`, whose message may be shown, and `connection.invalid`
     * without a connection.
     */
    check: () => checkConnection(db(), secrets, createClient),
    /** The enabled connection; null when there is none or it is disabled. */
    async open(): Promise<OpenConnection | null> {
      const stored = await openConnection(db(), secrets);
      if (!stored?.isEnabled) return null;
      return {
        client: createClient(stored),
        isSyncAutomatic: stored.isSyncAutomatic,
        capabilities: stored.capabilities,
        revision: stored.revision,
        checkedAtMs: stored.checkedAtMs,
      };
    },
    /** Creates a secret and returns it, the only time it is shown; the previous one is refused from now on (NET-4.8). */
    async createNoticeSecret(actor: Actor): Promise<string> {
      requireOperator(actor);
      const secret = randomBytes(32).toString('base64url');
      await saveNoticeSecret(actor, secret);
      return secret;
    },
    /** Sets a given secret, for example in the demo world. */
    async setNoticeSecret(actor: Actor, secret: string) {
      requireOperator(actor);
      if (secret.length < noticeSecretLengthMin) {
        throw new CodedError(
          'connection.invalid',
          `A notice signing secret needs at least ${noticeSecretLengthMin} characters.`,
        );
      }
      await saveNoticeSecret(actor, secret);
    },
    /** The secret for verification, read for each notice so that a rotation takes effect at once on every replica. */
    async readNoticeSecret(): Promise<string | null> {
      await secrets.ready();
      const stored = await store.readNoticeSecret(db());
      if (!stored) return null;
      return (await secrets.open(db(), store.noticeSecret, store.onlyRow, stored.sealed)).toString();
    },
    noticeStatus: () => store.readNoticeStatus(db()),
    /** Counts refused notices, which show a forgotten rotation. */
    countRefusals: (count: number) => store.addRefusals(db(), count),
  };
}

const subject = { kind: 'connection', id: 'operations' };
const noticeEntry = { operation: 'connection.set_notice_secret', subject };

async function writeRecorded({ db, secrets }: ConnectionDeps, actor: Actor, values: ConnectionValues) {
  const { baseUrl, isEnabled, isSyncAutomatic } = values;
  await secrets.ready();
  await recorded(
    db(),
    actor,
    ({ before, isNewToken }) => ({
      operation: 'connection.save',
      subject: { ...subject, name: baseUrl },
      before: before && { baseUrl: before.baseUrl, isEnabled: before.isEnabled },
      after: { baseUrl, isEnabled, isSyncAutomatic, isNewToken },
    }),
    (trx: Queryable) => writeConnection(trx, secrets, values),
  );
}

/**
 * The stored token is sent only to the address it was entered for: a person who may change the address, but can not
 * read the token, must not be able to have it sent to another server.
 */
async function parseInput(
  { db, secrets }: ConnectionDeps,
  { baseUrl, token: typed, isEnabled, isSyncAutomatic = true }: SaveConnectionInput,
): Promise<ConnectionValues> {
  const parsedUrl = parseBaseUrl(baseUrl);
  const stored = typed ? null : await openConnection(db(), secrets);
  if (stored && new URL(stored.baseUrl).origin !== new URL(parsedUrl).origin) {
    throw new CodedError(
      'connection.invalid',
      `The stored token is for ${new URL(stored.baseUrl).origin}. Enter the token again to send it to another address.`,
    );
  }
  const token = typed ? parseToken(typed) : stored?.token;
  if (!token) throw new CodedError('connection.invalid', 'Enter the token from operations.');
  return { baseUrl: parsedUrl, token, isEnabled, isSyncAutomatic };
}

/**
 * Queries the permissions of the token's project and stores them (NET-4.l, NET-5.1).
 *
 * Permissions granted since then take effect with the same token. Throws `OperationsError`.
 */
async function checkConnection(
  db: Queryable,
  secrets: Secrets,
  createClient: (connection: { baseUrl: string; token: string }) => OperationsClient,
): Promise<void> {
  const connection = await openConnection(db, secrets);
  if (!connection) throw new CodedError('connection.invalid', 'No connection is saved yet.');
  try {
    const { project, capabilities } = await createClient(connection).discover();
    await store.writeCheck(db, connection.revision, {
      projectName: project.name.slice(0, 200),
      capabilities: known(capabilities),
    });
  } catch (error) {
    await store.writeCheck(db, connection.revision, { error: safeFaultText(error) });
    throw error;
  }
}

/** The list is limited before it is stored: a valid answer has few flags. */
function known(capabilities: Record<string, true | number>): Record<string, true | number> {
  const entries = Object.entries(capabilities).filter(([name]) => /^[a-z0-9_]{1,80}$/.test(name));
  return Object.fromEntries(entries.slice(0, 100));
}

// Opens the token and the signing secret for use, and seals new ones; compares in code, in constant time.

interface OpenedConnection extends store.StoredConnection {
  token: string;
}

/** Throws `secrets.refused` when the stored token can not be decrypted. */
async function openConnection(db: Queryable, secrets: Secrets): Promise<OpenedConnection | null> {
  await secrets.ready();
  const stored = await store.readConnection(db);
  if (!stored) return null;
  const token = await secrets.open(db, store.connectionToken, store.onlyRow, stored.sealedToken);
  return { ...stored, token: token.toString() };
}

interface ConnectionValues {
  baseUrl: string;
  token: string;
  isEnabled: boolean;
  isSyncAutomatic: boolean;
}

/** Returns the previous row, and whether the token changed. Call `ready` before the transaction. */
async function writeConnection(
  trx: Queryable,
  secrets: Secrets,
  values: ConnectionValues,
): Promise<{ before: store.StoredConnection | null; isNewToken: boolean }> {
  await store.lockConnection(trx);
  const before = await store.readConnection(trx);
  const { token, ...rest } = values;
  const isNewToken = !(await isSame(trx, secrets, store.connectionToken, before?.sealedToken ?? null, token));
  const sealedToken = await secrets.seal(trx, store.connectionToken, store.onlyRow, token);
  const isSameTarget = !isNewToken && before?.baseUrl === values.baseUrl;
  await store.writeConnection(trx, { ...rest, sealedToken, isSameTarget });
  return { before, isNewToken };
}

/** Writing the same secret again changes nothing. Call `ready` before the transaction. */
async function writeNoticeSecret(trx: Queryable, secrets: Secrets, secret: string): Promise<void> {
  await store.lockConnection(trx);
  const before = await store.readNoticeSecret(trx);
  if (await isSame(trx, secrets, store.noticeSecret, before?.sealed ?? null, secret)) return;
  await store.writeNoticeSecret(trx, await secrets.seal(trx, store.noticeSecret, store.onlyRow, secret));
}

async function isSame(
  trx: Queryable,
  secrets: Secrets,
  column: SecretColumn,
  sealed: Buffer | null,
  secret: string,
): Promise<boolean> {
  if (sealed === null) return false;
  try {
    const stored = await secrets.open(trx, column, store.onlyRow, sealed);
    const given = Buffer.from(secret);
    return stored.length === given.length && timingSafeEqual(stored, given);
  } catch (error) {
    // A secret that can not be decrypted is replaced by writing a new one.
    if (hasCode(error, 'secrets.refused')) return false;
    throw error;
  }
}
