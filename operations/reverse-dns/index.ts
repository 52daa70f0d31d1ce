/**
 * Reverse DNS: customers name the addresses of their servers. A name has to lead back to the address unless the caller insists, and is
 * removed when the server loses the address: the next holder is not called by it.
 */
import { Resolver } from 'node:dns/promises';
import { CodedError, describeError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import { type Actor, requireWriter } from '#operations/accounts/index.ts';
import {
  findNameToWrite,
  findReverseName,
  noteNameWritten,
  type ReverseName,
  setReverseName,
} from '#operations/addresses/index.ts';
import { emit } from '#operations/events/index.ts';
import type { Scope } from '#operations/views/scope.ts';
import { changedMembers, record } from '#service-kit/audit/index.ts';
import { enqueueJob, type FeatureWork, type Job } from '#service-kit/jobs/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { findZone, type ReverseZone, readReverseDnsFile, recordOf } from './zones.ts';

export type { ReverseZone } from './zones.ts';
export type ReverseDns = ReturnType<typeof createReverseDns>;

export interface ReverseDnsDeps {
  db: () => Queryable;
  reporter: Reporter;
  /** The DNS servers of prefixes; an address of no prefix can't be named. */
  zones: readonly ReverseZone[];
  /** The addresses of a name; throws or is empty where it has none. */
  resolve: (name: string, family: 4 | 6) => Promise<readonly string[]>;
  /** Tells the job runner that there is work. */
  wake: () => void;
}

/** Which address of which server. */
export interface NamedAddress {
  tenantId: number | null;
  serverId: number;
  address: string;
}

type Precondition = (tx: Queryable, present: ReverseName) => Promise<void>;

const attemptsMax = 8;
/** Removing a record is tried again after this time, until it succeeds. */
const removalPauseMs = 600_000;
const hostname = new RegExp(schemas.hostnamePattern);

/** The DNS servers of the file, and the resolver that confirms names; none without a file. */
export async function readReverseDns(
  file: string | null,
  allowsInsecureHttp: boolean,
): Promise<Pick<ReverseDnsDeps, 'zones' | 'resolve'>> {
  const { zones, resolvers } =
    file === null ? { zones: [], resolvers: null } : await readReverseDnsFile(file, allowsInsecureHttp);
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  if (resolvers !== null) resolver.setServers(resolvers);
  return {
    zones,
    resolve: (name, family) => (family === 4 ? resolver.resolve4(name) : resolver.resolve6(name)),
  };
}

export function createReverseDns(deps: ReverseDnsDeps) {
  const find = (
    db: Queryable,
    actor: Actor,
    { tenantId, serverId, address: text }: NamedAddress,
    isLocked = false,
  ) => {
    const address = canonicalAddress(text);
    return address === null
      ? null
      : findReverseName(db, scopeOf(actor, tenantId), { serverId, address }, isLocked);
  };
  return {
    /** What it does beside the calls. */
    work: {
      jobHandlers: {
        'reverse_dns.write': {
          run: (job) => write(deps, job),
          attemptsMax,
          giveUp: (job, error) => giveUp(deps, job, error),
        },
      },
    } satisfies FeatureWork,
    /** Whether a DNS server has the names of this address. */
    isSupported: (address: string) => findZone(deps.zones, address) !== null,
    /** Null for an address that the server does not have, and for another's server. */
    findName: async (actor: Actor, of: NamedAddress) => find(deps.db(), actor, of),
    /**
     * Names the address, or with null takes the name away. Throws `reverse_dns.not_found`, `reverse_dns.invalid`,
     * `reverse_dns.unsupported`, and `reverse_dns.not_confirmed` for a name that does not lead to the address, unless `isForced`.
     */
    async setName(
      actor: Actor,
      of: NamedAddress,
      wanted: { name: string | null; isForced?: boolean },
      precondition?: Precondition,
    ): Promise<ReverseName> {
      const found = await find(deps.db(), actor, of);
      if (found === null) throw notFound();
      requireWriter(actor);
      const name = wanted.name === null ? null : checkedName(wanted.name);
      if (findZone(deps.zones, found.address) === null)
        throw new CodedError(
          'reverse_dns.unsupported',
          `Names of ${found.address} can’t be set here. Ask us for one.`,
        );
      if (name !== null && !wanted.isForced) await requireConfirmed(deps, name, found.address);
      const changed = await inTransaction(deps.db(), async (tx) => {
        const present = await find(tx, actor, of, true);
        if (present === null) throw notFound();
        await precondition?.(tx, present);
        if (present.name === name && present.status !== 'failed') return present;
        await setReverseName(tx, present, name);
        await record(tx, actor, {
          operation: 'server.set_reverse_dns',
          subject: { kind: 'server', id: present.serverId, name: null },
          tenantId: present.tenantId,
          ...changedMembers(
            { address: present.address, reverseDns: present.name },
            { address: present.address, reverseDns: name },
          ),
        });
        return (await find(tx, actor, of))!;
      });
      deps.wake();
      return changed;
    },
  };
}

function checkedName(text: string): string {
  const name = text.trim().toLowerCase().replace(/\.$/, '');
  if (name.length <= 253 && name.includes('.') && hostname.test(name)) return name;
  throw new CodedError('reverse_dns.invalid', 'A host name such as web-1.example.net.');
}

async function requireConfirmed({ resolve }: ReverseDnsDeps, name: string, address: string): Promise<void> {
  const family = address.includes(':') ? 6 : 4;
  const answers = await resolve(name, family).catch(() => []);
  if (answers.some((one) => canonicalAddress(one) === address)) return;
  throw new CodedError(
    'reverse_dns.not_confirmed',
    `${name} has no ${family === 4 ? 'A' : 'AAAA'} record with ${address}. Add it first; a new record may take minutes to be seen.`,
  );
}

/** Brings the DNS server in line with what is stored: always the newest name, however many were queued. */
async function write(deps: ReverseDnsDeps, job: Job): Promise<void> {
  const of = addressOf(job);
  const zone = findZone(deps.zones, of.address);
  for (;;) {
    const wanted = await findNameToWrite(deps.db(), of);
    if (wanted === null) return;
    if (zone === null)
      throw new CodedError('reverse_dns.failed', `No DNS server has the names of ${of.address}.`);
    await zone.write(recordOf(zone.name, of.address), wanted.name);
    const isNewest = await inTransaction(deps.db(), async (tx) => {
      const noted = await noteNameWritten(tx, of, wanted.version, 'applied');
      if (noted && wanted.serverId !== null)
        await emit(tx, { type: 'server.reverse_dns_applied', serverId: wanted.serverId });
      return noted;
    });
    if (isNewest) return;
  }
}

/** A name is left as failed, for its owner to see; one that has to go is tried again later. */
async function giveUp(deps: ReverseDnsDeps, job: Job, error: string): Promise<void> {
  const of = addressOf(job);
  deps.reporter.error('a reverse name could not be written', {
    address: of.address,
    error: describeError(error),
  });
  const wanted = await findNameToWrite(deps.db(), of);
  if (wanted === null) return;
  await inTransaction(deps.db(), async (tx) => {
    await noteNameWritten(tx, of, wanted.version, 'failed');
    if (wanted.name === null) await enqueueJob(tx, job.kind, job.payload as object, removalPauseMs);
  });
}

function addressOf(job: Job): { clusterId: number; address: string } {
  const { cluster_id: clusterId, address } = job.payload as { cluster_id: number; address: string };
  return { clusterId, address };
}

function scopeOf(actor: Actor, tenantId: number | null): Scope {
  if (actor.kind === 'project') return [];
  const whole: Scope = actor.kind === 'customer' ? actor.tenantIds : 'all';
  if (tenantId === null) return whole;
  return whole === 'all' || whole.includes(tenantId) ? [tenantId] : [];
}

const notFound = () => new CodedError('reverse_dns.not_found', 'The server has no such address.');
