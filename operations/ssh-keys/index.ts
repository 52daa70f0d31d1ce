/**
 * Public SSH keys that a workspace keeps under a name. Servers are ordered with them; one that runs keeps the keys that it
 * was ordered with.
 */
import { CodedError } from '#common/errors/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { type Actor, reachesTenant, requireWriter } from '#operations/accounts/index.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { parsePublicKey } from './public-key.ts';
import * as store from './store.ts';

export type { SshKey } from './store.ts';

/** Keys of one workspace. */
const sshKeysMax = 100;
const namePattern = new RegExp(schemas.namePattern, 'u');
export const publicKeyHint = 'must be a public key such as `ssh-ed25519 AAAA… me@home`';

export type SshKeys = ReturnType<typeof createSshKeys>;

/** Called inside the transaction of a change, before it is made or once it is; what it throws undoes the change. */
type InTransaction = (tx: Queryable, key: store.SshKey) => Promise<void>;

/** Another's workspace has no keys, so an unknown key and one of another workspace are the same `ssh_keys.not_found`. */
export function createSshKeys({ db }: { db: () => Queryable }) {
  return {
    /** By name. */
    listKeys: async (actor: Actor, tenantId: number): Promise<store.SshKey[]> =>
      reachesTenant(actor, tenantId) ? store.listKeys(db(), tenantId) : [],
    findKey: async (actor: Actor, tenantId: number, id: number): Promise<store.SshKey | null> =>
      reachesTenant(actor, tenantId) ? store.findKey(db(), tenantId, id) : null,

    /** Throws `ssh_keys.invalid` (details.fields), `ssh_keys.exists` (details.id), `ssh_keys.limit`. */
    async addKey(
      actor: Actor,
      input: { tenantId: number; name: string; publicKey: string },
      onAdded?: InTransaction,
    ): Promise<store.SshKey> {
      const { tenantId, name } = input;
      requireWrite(actor, tenantId);
      const parsed = parsePublicKey(input.publicKey);
      if (parsed === null) throw invalid('public_key', publicKeyHint);
      requireName(name);
      return inTransaction(db(), async (tx) => {
        const keys = await store.lockKeys(tx, tenantId);
        requireFree(keys, { name, fingerprint: parsed.fingerprint });
        if (keys.length >= sshKeysMax)
          throw new CodedError('ssh_keys.limit', `This workspace has ${sshKeysMax} SSH keys. Delete one.`, {
            limit: 'ssh_keys',
            max: sshKeysMax,
            used: keys.length,
          });
        const { text: publicKey, fingerprint } = parsed;
        const key = await store.insertKey(tx, { tenantId, name, publicKey, fingerprint });
        await onAdded?.(tx, key);
        const subject = { kind: 'ssh_key', id: key.id, name };
        await record(tx, actor, {
          operation: 'ssh_key.create',
          subject,
          tenantId,
          after: { name, fingerprint },
        });
        return key;
      });
    },

    /** Throws `ssh_keys.not_found`, `ssh_keys.invalid`, `ssh_keys.exists`. */
    async renameKey(
      actor: Actor,
      { tenantId, id, name }: { tenantId: number; id: number; name: string },
      precondition?: InTransaction,
    ): Promise<store.SshKey> {
      requireWrite(actor, tenantId);
      requireName(name);
      return inTransaction(db(), async (tx) => {
        const keys = await store.lockKeys(tx, tenantId);
        const key = await requireKey(tx, tenantId, id);
        await precondition?.(tx, key);
        requireFree(
          keys.filter((one) => one.id !== id),
          { name },
        );
        const renamed = await store.renameKey(tx, tenantId, id, name);
        const subject = { kind: 'ssh_key', id, name: key.name };
        await record(tx, actor, {
          operation: 'ssh_key.update',
          subject,
          tenantId,
          ...changedMembers({ name: key.name }, { name }),
        });
        return renamed;
      });
    },

    /** Throws `ssh_keys.not_found`. */
    async deleteKey(
      actor: Actor,
      { tenantId, id }: { tenantId: number; id: number },
      precondition?: InTransaction,
    ): Promise<void> {
      requireWrite(actor, tenantId);
      await inTransaction(db(), async (tx) => {
        const key = await requireKey(tx, tenantId, id);
        await precondition?.(tx, key);
        await store.deleteKey(tx, tenantId, id);
        const { name, fingerprint } = key;
        const subject = { kind: 'ssh_key', id, name };
        await record(tx, actor, {
          operation: 'ssh_key.delete',
          subject,
          tenantId,
          before: { name, fingerprint },
        });
      });
    },

    /** The lines that an order's keys stand for: text as it is, the id or the name of a kept key; null for what is none. */
    async resolveKeys(tenantId: number, refs: readonly (string | number)[]): Promise<(string | null)[]> {
      const parsed = refs.map((ref) => (typeof ref === 'string' && parsePublicKey(ref) ? ref.trim() : null));
      if (parsed.every((line) => line !== null)) return parsed;
      const keys = await store.listKeys(db(), tenantId);
      return refs.map(
        (ref, index) =>
          parsed[index] ?? keys.find(({ id, name }) => ref === id || ref === name)?.publicKey ?? null,
      );
    },
  };
}

async function requireKey(tx: Queryable, tenantId: number, id: number): Promise<store.SshKey> {
  const key = await store.lockKey(tx, tenantId, id);
  if (key === null) throw notFound();
  return key;
}

function requireWrite(actor: Actor, tenantId: number): void {
  if (!reachesTenant(actor, tenantId)) throw notFound();
  requireWriter(actor);
}

function requireName(name: string): void {
  if (name.length < 1 || [...name].length > 64 || !namePattern.test(name))
    throw invalid(
      'name',
      'must be 1 to 64 characters without spaces around them and without control characters',
    );
}

/** Throws for a name or key that one of these has. */
function requireFree(keys: readonly store.SshKey[], given: { name: string; fingerprint?: string }): void {
  const same = keys.find(
    ({ name, fingerprint }) =>
      name.toLowerCase() === given.name.toLowerCase() || fingerprint === given.fingerprint,
  );
  if (same === undefined) return;
  const what = same.fingerprint === given.fingerprint ? 'This key is there already' : 'This name is used';
  throw new CodedError('ssh_keys.exists', `${what}: “${same.name}”.`, { id: same.id });
}

const invalid = (path: string, message: string) =>
  new CodedError('ssh_keys.invalid', 'Some fields are not as they must be; see `fields`.', {
    fields: [{ path, code: 'pattern', message }],
  });
const notFound = () => new CodedError('ssh_keys.not_found', 'There is no such SSH key.');
