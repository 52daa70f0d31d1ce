/** A site with a sensor that reports attacks, programs that note how they were started, and workers of hand-off. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import {
  createIncidentSpool,
  type ObservationPart,
  observation,
} from '#monitor/incidents/testing/observations.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { stopDatabaseClock } from '#monitor/testing/still-clock.ts';
import { createWorld } from '#monitor/testing/world.ts';
import type { TestDatabase } from '#service-kit/testing/index.ts';
import { createHandOff, type HandOffDeps, type RuleInput, type RuleMode } from '../index.ts';

export type Stage = Awaited<ReturnType<typeof createStage>>;

/** How a program was started. */
export interface Started {
  args: string[];
  input: Record<string, unknown>;
}

/** `SYN flood on 198.51.100.7`, 25,000 packets/s and 12 Mbit/s, by the clock of the stage. */
export async function createStage(change: Partial<HandOffDeps> = {}) {
  const world = await createWorld();
  const clock = await stopDatabaseClock(world.database, Date.now());
  const folder = await mkdtemp(join(tmpdir(), 'svc-hand-off-'));
  const logFile = join(folder, '.log');
  const log: string[] = [];
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const request = { token, host_name: 'node-1', node: 'node-1', sensor_version: '0.2.0' };
  const sensor = (await world.sensors.authenticate((await world.sensors.enrol(request))!.credential))!;
  await world.sites.mapCluster(systemActor, 7, world.siteId);
  await placeServers(world.database.pool);
  const spool = createIncidentSpool();
  const deps: HandOffDeps = {
    ...world,
    reporter: createReporter({ program: 'monitor', write: (line) => log.push(line) }),
    clock: systemClock,
    webhooks: { allowPrivate: true },
    commandsFolder: folder,
    bgp: { peers: [], ownAs: null, keepSeconds: 120 },
    ...change,
  };
  const create = (other: Partial<HandOffDeps> = {}) => createHandOff({ ...deps, ...other });
  const handOff = create();

  async function writeCommand(name: string, script: string): Promise<void> {
    const file = join(folder, name);
    await writeFile(file, `#!/bin/sh\n${script}\n`);
    await chmod(file, 0o755);
  }
  // A line of arguments, then the line of standard input.
  await writeCommand(
    'block.sh',
    `line=$(cat)\nprintf '%s\\n%s\\n' "$*" "$line" >> ${logFile}\necho did "$4"`,
  );
  await writeCommand('fail.sh', 'cat > /dev/null\necho went wrong >&2\nexit 3');

  const attack = (part: Partial<ObservationPart> = {}) =>
    observation({
      startedAtMs: clock.nowMs() - 5000,
      lastObservedAtMs: clock.nowMs(),
      ...part,
    });
  return {
    world,
    clock,
    folder,
    log,
    sensor,
    deps,
    handOff,
    create,
    writeCommand,
    attack,
    say: (...incidents: IncidentObservation[]) =>
      world.inbox.receiveUrgent(
        sensor,
        compressUpload(encodeUpload(spool(...incidents))),
        'zstd',
        requireIncidentsAlone,
      ),
    /** The next revision of an attack: over, or going on. */
    next: (before: IncidentObservation, part: Partial<ObservationPart> = {}): IncidentObservation => ({
      ...before,
      revision: before.revision + 1,
      lastObservedAtMs: clock.nowMs(),
      ...(part as Partial<IncidentObservation>),
    }),
    recovered: (before: IncidentObservation): IncidentObservation => ({
      ...before,
      revision: before.revision + 1,
      lastObservedAtMs: clock.nowMs(),
      recoveredAtMs: clock.nowMs(),
      state: 'recovered',
      current: null,
    }),
    later: (seconds: number) => clock.set(clock.nowMs() + seconds * 1000),
    /** Makes what waits for a next attempt due, because the database's clock stands. */
    attemptNow: () =>
      world.database.pool.query(
        "update hand_off_actions set next_attempt_at = svc_now() where state in ('waiting', 'ending')",
      ),
    async addRule(
      part: Partial<RuleInput> = {},
      mode: RuleMode = 'on',
      siteId = world.siteId,
    ): Promise<number> {
      const { id } = await handOff.addRule(systemActor, siteId, ruleInput(part));
      for (const step of ['dry_run', 'on'] as const) {
        if (mode === 'off' || (mode === 'dry_run' && step === 'on')) break;
        await this.switchTo(id, step, siteId);
      }
      return id;
    },
    async switchTo(id: number, mode: RuleMode, siteId = world.siteId): Promise<void> {
      const rule = (await handOff.describeSite(siteId)).rules.find((one) => one.id === id)!;
      await handOff.switchRule(systemActor, siteId, id, mode, rule.revision);
    },
    /** How `block.sh` was started so far. */
    async started(): Promise<Started[]> {
      const lines = (await readFile(logFile, 'utf8').catch(() => '')).trim().split('\n').filter(Boolean);
      return Array.from({ length: lines.length / 2 }, (_, i) => ({
        args: lines[i * 2]!.split(' '),
        input: JSON.parse(lines[i * 2 + 1]!) as Record<string, unknown>,
      }));
    },
    states: async () =>
      (await handOff.listActions(world.siteId, null, 100))
        .toSorted((a, b) => a.id - b.id)
        .map((one) => `${one.address} ${one.state}${one.isDryRun ? ' (dry run)' : ''}`),
    async reset(): Promise<void> {
      await world.database.pool.query(
        'truncate hand_off_actions, hand_off_rules, hand_off_sites, incidents, incident_observations, leases cascade',
      );
      await placeServers(world.database.pool);
      await rm(logFile, { force: true });
      log.length = 0;
      await clock.set(Date.now());
    },
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Puts a server with each address that tests attack on the sensor's node. */
async function placeServers(pool: Pick<TestDatabase['pool'], 'query'>): Promise<void> {
  const addresses = Array.from({ length: 254 }, (_, i) => `198.51.100.${i + 1}`);
  await pool.query('truncate vm_placements');
  await pool.query(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     select 7, n, 'node-1', '52:54:00:00:00:01', 'br0', address::inet, true, '2026-01-01'
     from unnest($1::text[]) with ordinality as given (address, n)`,
    [[...addresses, '2001:db8::1', '2001:db8::7', '2001:db8:0:1::1']],
  );
}

/** A rule that starts `block.sh` for every attack on 198.51.100.0/24. */
export function ruleInput(part: Partial<RuleInput> = {}): RuleInput {
  return {
    name: 'Block',
    kind: 'command',
    prefixes: ['198.51.100.0/24'],
    direction: 'inbound',
    minPps: '',
    minBps: '',
    holdSeconds: '300',
    command: 'block.sh',
    ...part,
  };
}
