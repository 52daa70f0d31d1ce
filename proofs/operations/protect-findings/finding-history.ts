/**
 * Steps in the life of findings and ignores, taken by the product and by a model that is written from NET-2.6.5: one address that
 * moves between two servers of two customers, checks of it in two versions, retries of old checks, ignores, and passing time.
 *
 * Time passes by moving the stored times back, so that histories run beside one another. Minutes of a history count from its
 * beginning; `render` says which real time a minute is now.
 */
import fc from 'fast-check';
import type { Projection } from '#contracts/admin-api/vulnerabilities.ts';
import { type CustomerActor, systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import type { World } from '#operations/testing/create-world.ts';
import {
  type FindingMonitor,
  findingOf,
  fingerprintOf,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';

const cves = ['CVE-2024-0001', 'CVE-2024-0002', 'CVE-2024-0003'] as const;
const ports = [22, 2222] as const;
const versions = ['9.6p1', '9.7p1'] as const;
const weekMinutes = 7 * 24 * 60;

type Bit = 0 | 1;
interface Named {
  /** A finding that is shown now, in the place of the one that is named. */
  isShown: boolean;
  /** Whose customer acts. */
  server: Bit;
  port: Bit;
  version: Bit;
  cve: 0 | 1 | 2;
}

export type Step =
  /** A check of the address: of each port, which version and which of the CVEs (bits); null: not open. */
  | { kind: 'check'; found: readonly [Service | null, Service | null] }
  | { kind: 'retry'; which: number }
  | ({ kind: 'ignore'; minutes: number | null } & Named)
  | ({ kind: 'end' } & Named)
  | { kind: 'reassign'; server: Bit }
  | { kind: 'wait'; minutes: number };

interface Service {
  version: Bit;
  cves: number;
}

const bit = fc.constantFrom<Bit>(0, 1);
const service = fc.option(fc.record({ version: bit, cves: fc.nat(7) }), { freq: 8 });
const named = {
  isShown: fc.boolean(),
  server: bit,
  port: bit,
  version: bit,
  cve: fc.constantFrom<0 | 1 | 2>(0, 1, 2),
};

export const steps: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('check' as const), found: fc.tuple(service, service) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('retry' as const), which: fc.nat(9) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      ...{ kind: fc.constant('ignore' as const), minutes: fc.constantFrom(null, 60, 6000), ...named },
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('end' as const), ...named }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('reassign' as const), server: bit }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), minutes: fc.constantFrom(30, 200, 6000) }),
  },
);

interface Check {
  generation: number;
  /** Minutes of the history. */
  at: number;
  found: readonly [Service | null, Service | null];
}

interface Ignore {
  generation: number;
  /** Port, version and CVE. */
  what: string;
  until: number | null;
}

export type History = Awaited<ReturnType<typeof createHistory>>;

/** Two servers of two customers, and one address that either has. */
export async function createHistory(world: World, monitor: FindingMonitor, lane: number) {
  const owners: { serverId: number; tenantId: number; actor: CustomerActor }[] = [];
  for (const side of ['a', 'b']) {
    const customer = await world.createCustomer(`History ${lane}${side}`);
    const { serverId } = await world.deploy(customer.tenant, `history-${side}`);
    await world.backdate(serverId, '90 days');
    owners.push({ serverId, tenantId: customer.tenant.id, actor: ownerOf(customer) });
  }
  const [first] = await world.addresses.listAllocationsOfServers([owners[0]!.serverId]);
  const { pool } = world.database;
  let allocation: Allocation = first!;
  let [startMs, elapsed, checksMade] = [0, 0, 0];
  // The model.
  let checks: Check[] = [];
  let ignores: Ignore[] = [];
  let held: Check | null = null;
  let holder: Bit = 0;

  const render = (minute: number) =>
    new Date(startMs + Math.round((minute - elapsed) * 60_000)).toISOString();
  const whatOf = ({ port, version, cve }: Pick<Named, 'port' | 'version' | 'cve'>) =>
    `${ports[port]} ${version} ${cves[cve]}`;

  function toProjection({ generation, at, found }: Check): Projection {
    const of = { ...allocation, ...(generation === allocation.id ? {} : { id: generation }) };
    const services = found.flatMap((each, port) =>
      each === null
        ? []
        : projectedService({
            ...{ port: ports[port]!, version: versions[each.version], observed_at: render(at) },
            findings: cves.filter((_, cve) => each.cves & (1 << cve)).map((cve) => findingOf(cve)),
          }),
    );
    return projectionOf(of, { checked_at: render(at), services });
  }

  async function deliver(check: Check): Promise<void> {
    const isStale = elapsed - check.at > weekMinutes;
    const expected =
      check.generation !== allocation.id
        ? 'unmatched'
        : held !== null && check.at < held.at
          ? 'superseded'
          : (held !== null && check.at === held.at) || isStale
            ? 'unchanged'
            : 'accepted';
    const [got] = await monitor.deliver(toProjection(check));
    if (got !== expected) throw new Error(`check: ${got} and not ${expected}`);
    if (got === 'accepted') held = check;
  }

  /** What a server is shown: port, version, CVE and state. */
  function expectedOf(server: Bit): string[] {
    if (held === null || server !== holder || elapsed - held.at >= weekMinutes) return [];
    const { found, generation } = held;
    return found
      .flatMap((each, port) =>
        each === null
          ? []
          : cves.flatMap((_, cve) => {
              if (!(each.cves & (1 << cve))) return [];
              const what = whatOf({ port: port as Bit, version: each.version, cve: cve as 0 });
              return `${what} ${isIgnored(generation, what) ? 'ignored' : 'active'}`;
            }),
      )
      .sort();
  }

  const isIgnored = (generation: number, what: string) =>
    ignores.some(
      (each) =>
        each.generation === generation && each.what === what && (each.until === null || each.until > elapsed),
    );

  const keyOf = ({ port, version, cve }: Named) => ({
    ...{ address: allocation.address, transport: 'tcp' as const, port: ports[port] },
    ...{ fingerprint: fingerprintOf(`OpenSSH ${versions[version]}`), cveId: cves[cve] },
  });

  /** Where the step is about what is shown: the finding of this number. */
  function aim<S extends Named>(step: S): S {
    const shown = expectedOf(holder);
    if (!step.isShown || shown.length === 0) return step;
    const [port, version, cve] =
      shown[(step.port * 6 + step.version * 3 + step.cve) % shown.length]!.split(' ');
    const index = (list: readonly unknown[], value: unknown) => list.indexOf(value) as 0 | 1;
    return {
      ...step,
      ...{
        server: holder,
        port: index(ports, Number(port)),
        version: Number(version),
        cve: index(cves, cve),
      },
    };
  }

  async function ignore(step: Named & { minutes: number | null }): Promise<void> {
    const { actor, serverId } = owners[step.server]!;
    const what = whatOf(step);
    const shown = expectedOf(step.server).find((each) => each.startsWith(`${what} `));
    const expected = shown === undefined ? 'no_finding' : shown.endsWith('ignored') ? 'held' : 'new';
    const until = step.minutes === null ? null : new Date(render(elapsed + step.minutes));
    const got = await world.protectFindings
      .ignore(actor, serverId, { ...keyOf(step), reason: 'history', until })
      .then(
        ({ isNew }) => (isNew ? 'new' : 'held'),
        (error) => String(error.code).replace('protect_findings.', ''),
      );
    if (got !== expected) throw new Error(`ignore: ${got} and not ${expected}`);
    if (expected !== 'new') return;
    const generation = allocation.id;
    ignores = ignores.filter((each) => each.generation !== generation || each.what !== what);
    ignores.push({ generation, what, until: step.minutes === null ? null : elapsed + step.minutes });
  }

  async function end(step: Named): Promise<void> {
    const { actor, serverId } = owners[step.server]!;
    const what = whatOf(step);
    const expected = step.server === holder && isIgnored(allocation.id, what);
    const got = await world.protectFindings.endIgnore(actor, serverId, keyOf(step));
    if (got !== expected) throw new Error(`end: ${got} and not ${expected}`);
    if (got) ignores = ignores.filter((each) => each.generation !== allocation.id || each.what !== what);
  }

  async function reassign(server: Bit): Promise<void> {
    const { serverId, tenantId } = owners[server]!;
    await pool.query(
      `with ended as (update allocations set released_at = svc_now() where id = $1 returning *)
       insert into allocations (pool_id, cluster_id, tenant_id, server_id, address, prefix_length, gateway, is_primary, assigned_at)
       select pool_id, cluster_id, $2, $3, address, prefix_length, gateway, is_primary, assigned_at + interval '1 second' from ended`,
      [allocation.id, tenantId, serverId],
    );
    const [next] = (await world.addresses.listAllocationsOfServers([serverId])).filter(
      ({ address }) => address === allocation.address,
    );
    [allocation, holder, held] = [next!, server, null];
  }

  async function wait(minutes: number): Promise<void> {
    elapsed += minutes;
    const by = [`${minutes} minutes`, owners.map(({ serverId }) => serverId)];
    await pool.query(
      `with moved as (update finding_services set observed_at = observed_at - $1::interval
         where allocation_id in (select allocation_id from finding_projections where server_id = any($2::bigint[]))),
       counted as (update finding_counts set valid_from = valid_from - $1::interval, valid_until = valid_until - $1::interval
         where allocation_id in (select allocation_id from finding_projections where server_id = any($2::bigint[]))),
       lapsed as (update finding_ignores set until = until - $1::interval where server_id = any($2::bigint[]))
       update finding_projections set checked_at = checked_at - $1::interval where server_id = any($2::bigint[])`,
      by,
    );
  }

  return {
    async reset(): Promise<void> {
      [startMs, elapsed, checksMade, checks, ignores, held] = [worldNowMs(), 0, 0, [], [], null];
      await pool.query(
        `with forgotten as (delete from finding_projections where server_id = any($1::bigint[])),
           told as (delete from known_findings where server_id = any($1::bigint[]))
         delete from finding_ignores where server_id = any($1::bigint[])`,
        [owners.map(({ serverId }) => serverId)],
      );
      if (holder !== 0) await reassign(0);
      await pool.query('delete from allocations where host(address) = $1 and released_at is not null', [
        allocation.address,
      ]);
    },
    async take(step: Step): Promise<void> {
      switch (step.kind) {
        case 'check': {
          // A millisecond apart.
          checksMade += 1;
          const check = { generation: allocation.id, at: elapsed + checksMade / 60_000, found: step.found };
          checks.push(check);
          return deliver(check);
        }
        case 'retry': {
          const check = checks[step.which % Math.max(1, checks.length)];
          return check && deliver(check);
        }
        case 'ignore':
          return ignore(aim(step));
        case 'end':
          return void (await end(aim(step)));
        case 'reassign':
          return reassign(step.server);
        case 'wait':
          return wait(step.minutes);
      }
    },
    /** What each of the two servers shows, and what the model says. */
    async readBoth(): Promise<string[][]> {
      return Promise.all(
        owners.map(async ({ serverId, tenantId }) => {
          const rows = await world.protectFindings.list(systemActor, { serverId, tenantId }, { limit: 100 });
          const { active, ignored } = await world.protectFindings.totalAll(systemActor, { serverId });
          const isActive = rows.filter(({ state }) => state === 'active').length;
          if (active !== isActive || ignored !== rows.length - isActive)
            throw new Error(`counted ${active} active and ${ignored} ignored of ${rows.length} findings`);
          return rows
            .filter(({ address }) => address === allocation.address)
            .map(
              ({ port, version, cveId, state }) =>
                `${port} ${versions.indexOf(version as '9.6p1')} ${cveId} ${state}`,
            )
            .sort();
        }),
      );
    },
    modelOfBoth: (): string[][] => [expectedOf(0), expectedOf(1)],
  };
}
