/**
 * Operators' ignores of findings: with a reason, who and until when, independent of those of customers (NET-2.6.5).
 *
 * An ignore is about one address, port, software and CVE of one server. It is not inherited by another version, another server or
 * another allocation of the address.
 */
import { CodedError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { listAddressGenerations } from '#monitor/views/address-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable, readNowMs } from '#service-kit/postgres/index.ts';
import { countServers } from '../assessing/server-store.ts';
import * as store from './store.ts';

export interface IgnoreInput extends store.IgnoredFinding {
  reason: string;
  /** Null: until it is ended. */
  untilMs: number | null;
}

export const ignoreReasonMax = 500;

export function createIgnores(db: () => Queryable) {
  return {
    /**
     * Ignores an active finding; returns the ignore's id. Throws `vulnerabilities.invalid` with what to correct,
     * `vulnerabilities.no_finding`, `vulnerabilities.ignored`.
     */
    ignore: (actor: Actor, input: IgnoreInput) => ignore(db(), actor, input),
    /** False where there is none in force with this id. */
    endIgnore: (actor: Actor, id: number) => end(db(), actor, id),
    /** Of a server, of a site, or all (null); those in force and the newest first. */
    listIgnores: (
      of: { clusterId: number; serverId: number } | { siteId: number | null },
      limit: number,
    ): Promise<store.Ignore[]> =>
      'siteId' in of
        ? store.listAll(db(), of.siteId, limit)
        : store.listOfServer(db(), of.clusterId, of.serverId, limit),
  };
}

async function ignore(db: Queryable, actor: Actor, input: IgnoreInput): Promise<number> {
  requireOperator(actor);
  const reason = oneLine(input.reason);
  if (reason === '' || reason.length > ignoreReasonMax)
    throw new CodedError(
      'vulnerabilities.invalid',
      `Enter a reason of at most ${ignoreReasonMax} characters.`,
    );
  if (!parseAddress(input.address)) throw noFinding();
  return inTransaction(db, async (trx) => {
    if (input.untilMs !== null && !(input.untilMs > (await readNowMs(trx))))
      throw new CodedError('vulnerabilities.invalid', 'Enter an end in the future, or none.');
    if (!(await store.lockFinding(trx, input))) throw noFinding();
    await store.endExpired(trx, [input]);
    const generations = await listAddressGenerations(trx, [input]);
    const generation = generations.findLast(({ address }) => address === input.address)?.generation ?? null;
    const id = await store.insertIgnore(trx, {
      ...input,
      ...{ reason, generation, createdBy: actor.name ?? actor.kind },
    });
    if (id === null) throw new CodedError('vulnerabilities.ignored', 'This finding is ignored already.');
    await countServers(trx, [input]);
    await record(trx, actor, {
      operation: 'finding.ignore',
      subject: subjectOf(id, input),
      after: { reason, until: input.untilMs === null ? null : new Date(input.untilMs).toISOString() },
    });
    return id;
  });
}

const noFinding = () =>
  new CodedError(
    'vulnerabilities.no_finding',
    'The server has no such finding any more. Load its page again to see what there is now.',
  );

async function end(db: Queryable, actor: Actor, id: number): Promise<boolean> {
  requireOperator(actor);
  return inTransaction(db, async (trx) => {
    const found = await store.findIgnore(trx, id);
    if (!found || !(await store.endIgnore(trx, [id], actor.name ?? actor.kind))) return false;
    await countServers(trx, [found]);
    await record(trx, actor, {
      operation: 'finding.end_ignore',
      subject: subjectOf(id, found),
      before: { reason: found.reason },
    });
    return true;
  });
}

const subjectOf = (id: number, { cve, address, transport, port }: store.IgnoredFinding) => ({
  ...{ kind: 'ignore', id, name: `${cve} at ${address} ${transport}/${port}` },
});

/**
 * Ends ignores of these servers that have reached their end, and those of an address that was assigned anew since: they are not
 * inherited (NET-2.6.5). While operations lists no allocation of the address, they stay.
 */
export async function endIgnores(
  trx: Queryable,
  servers: readonly { clusterId: number; serverId: number }[],
): Promise<void> {
  await store.endExpired(trx, servers);
  const open = await store.listOpen(trx, servers);
  if (open.length === 0) return;
  const generations = await listAddressGenerations(trx, open);
  const reassigned = open.filter((one) => {
    const now = generations.filter(
      ({ clusterId, serverId, address }) =>
        clusterId === one.clusterId && serverId === one.serverId && address === one.address,
    );
    if (now.length === 0) return false;
    if (one.generation !== null) return now.every(({ generation }) => generation !== one.generation);
    // Made while no allocation was listed: it is of the one that was assigned by then.
    return now.every(({ generation }) => assignedAtMs(generation) > one.createdAtMs);
  });
  if (reassigned.length > 0)
    await store.endIgnore(
      trx,
      reassigned.map(({ id }) => id),
      'reassigned',
    );
}

const assignedAtMs = (generation: string) => Date.parse(generation.slice(generation.indexOf(' ') + 1));
