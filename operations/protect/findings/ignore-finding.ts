/**
 * A customer's choice to ignore one finding, and the end of it (NET-2.6.5).
 *
 * An ignore is bound to account, server, allocation generation, port, version (by its fingerprint) and CVE; another generation
 * or version inherits nothing, because nothing but this very key is looked up. The monitor's ignores are its own.
 */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { isPlainLine } from '#common/text/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { type Actor, type CustomerActor, forbidden } from '#operations/accounts/index.ts';
import type { Addresses, Allocation } from '#operations/addresses/index.ts';
import { lockLiving } from '#operations/servers/index.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { findSettings } from '../settings/index.ts';
import type { FindingKey, FindingSubject } from './finding.ts';
import * as store from './store.ts';

interface IgnoreFindingDeps {
  db: () => Queryable;
  addresses: Pick<Addresses, 'lockAllocationsOfServer'>;
}

export interface IgnoreFindingInput extends FindingKey {
  /** 1 to 500 characters, shown beside the finding. */
  reason: string;
  /** Null: until it is ended. */
  until: Date | null;
}

export interface IgnoreFindingResult {
  /** False where it was ignored already at all these addresses; an ignore that holds stays as it is. */
  isNew: boolean;
}

const reasonMax = schemas.findingReasonMax;
const yearsMax = 5;

/**
 * Throws `protect_findings.invalid` (details: `fields`), `protect_findings.not_found` (the server),
 * `protect_findings.no_finding` (the server has no such finding now), `protect_findings.views_off`, `accounts.forbidden`.
 * Customers only.
 */
export async function ignoreFinding(
  deps: IgnoreFindingDeps,
  actor: Actor,
  serverId: number,
  input: IgnoreFindingInput,
): Promise<IgnoreFindingResult> {
  return changeOf(deps, actor, serverId, async (tx, customer, { of, name, allocations }) => {
    const reason = checkInput(input, await readNowMs(tx));
    const { personId, keyId } = customer;
    const given = { reason, until: input.until, personId, isByKey: keyId !== null };
    const added: Allocation[] = [];
    let isFound = false;
    for (const allocation of selectAddresses(allocations, input)) {
      const finding = { ...input, allocationId: allocation.id };
      if (!(await store.hasFinding(tx, of, finding))) continue;
      isFound = true;
      if (await store.isIgnored(tx, of, finding)) continue;
      await store.insertIgnore(tx, of, finding, given);
      added.push(allocation);
    }
    if (!isFound) throw new CodedError('protect_findings.no_finding', 'The server has no such finding now.');
    await store.storeCounts(tx, idsOf(added));
    if (added.length > 0)
      await record(tx, customer, {
        operation: 'protect.ignore_finding',
        subject: { kind: 'server', id: serverId, name },
        tenantId: of.tenantId,
        after: { ...describe(input, added), reason, until: input.until },
      });
    return { isNew: added.length > 0 };
  });
}

/** False where the finding was not ignored. Throws `protect_findings.not_found`, `.views_off`, `accounts.forbidden`. */
export async function endIgnore(
  deps: IgnoreFindingDeps,
  actor: Actor,
  serverId: number,
  key: FindingKey,
): Promise<boolean> {
  return changeOf(deps, actor, serverId, async (tx, customer, { of, name, allocations }) => {
    const ended: Allocation[] = [];
    for (const allocation of selectAddresses(allocations, key))
      if (await store.endIgnore(tx, of, { ...key, allocationId: allocation.id })) ended.push(allocation);
    await store.storeCounts(tx, idsOf(ended));
    if (ended.length > 0)
      await record(tx, customer, {
        operation: 'protect.end_ignore',
        subject: { kind: 'server', id: serverId, name },
        tenantId: of.tenantId,
        before: describe(key, ended),
      });
    return ended.length > 0;
  });
}

interface Locked {
  of: FindingSubject;
  name: string;
  /** Generations that the server has now. */
  allocations: readonly Allocation[];
}

function selectAddresses(
  allocations: readonly Allocation[],
  { address: named }: FindingKey,
): readonly Allocation[] {
  return named === null
    ? allocations
    : allocations.filter(({ address }) => address === canonicalAddress(named));
}

/** Changes something of a living server of the actor, with the server and its generations locked. */
function changeOf<Result>(
  deps: IgnoreFindingDeps,
  actor: Actor,
  serverId: number,
  change: (tx: Queryable, customer: CustomerActor, locked: Locked) => Promise<Result>,
): Promise<Result> {
  if (actor.kind !== 'customer' || !actor.canWrite)
    throw forbidden('Only the customer ignores findings of a server.');
  return inTransaction(deps.db(), async (tx) => {
    const server = (await lockLiving(tx, actor.tenantIds, [serverId]))[0];
    if (!server) throw new CodedError('protect_findings.not_found', 'There is no such server.');
    const of = { serverId, tenantId: server.tenantId };
    if (!(await findSettings(tx, of)).viewsOn)
      throw new CodedError('protect_findings.views_off', 'The protection views of this server are off.');
    const all = await deps.addresses.lockAllocationsOfServer(tx, serverId);
    const allocations = all.filter(({ tenantId }) => tenantId === of.tenantId);
    return change(tx, actor, { of, name: server.name, allocations });
  });
}

/** Returns the reason as it is kept. */
function checkInput({ reason, until }: IgnoreFindingInput, nowMs: number): string {
  const fields: { path: string; message: string }[] = [];
  const text = reason.trim();
  if (text === '')
    fields.push({ path: 'reason', message: 'is required: say why the finding can be ignored' });
  else if (text.length > reasonMax)
    fields.push({ path: 'reason', message: `must have at most ${reasonMax} characters` });
  else if (!isPlainLine(text) || !text.isWellFormed())
    fields.push({ path: 'reason', message: 'must be one line of text without control characters' });
  if (until !== null && Number.isNaN(until.getTime()))
    fields.push({ path: 'until', message: 'must be a date' });
  else if (until !== null && until.getTime() <= nowMs)
    fields.push({ path: 'until', message: 'must be in the future' });
  else if (until !== null && until.getTime() > nowMs + yearsMax * 366 * 86_400_000)
    fields.push({ path: 'until', message: `must be within ${yearsMax} years; leave it out for no expiry` });
  if (fields.length === 0) return text;
  throw new CodedError('protect_findings.invalid', 'Some fields are not as they must be.', { fields });
}

const idsOf = (allocations: readonly Allocation[]) => allocations.map(({ id }) => id);

const describe = ({ transport, port, fingerprint, cveId }: FindingKey, at: readonly Allocation[]) => ({
  ...{ cve: cveId, addresses: at.map(({ address }) => address), transport, port, fingerprint },
});
