/**
 * B7: sensors fetch their plans while telemetry holds the locks of every table it writes and its uploads wait for them on
 * every connection that the monitor has for writing. A plan takes its time, never fifteen seconds.
 */

import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { createIntake } from '#monitor/intake/index.ts';
import { createSensors } from '#monitor/sensors/index.ts';
import { registerSensorApi } from '#monitor/surfaces/sensor-api/index.ts';
import { captureMinute, createMonitorWorld, createSpool, type MonitorWorld } from '#monitor/testing/index.ts';
import { planSections } from '#monitor/testing/plan-sections.ts';
import { createHttpServer } from '#service-kit/http/index.ts';

export const name = 'plans-under-load';

export interface PlanOptions {
  /** Fetches. */
  n: number;
  seed: number;
  report(line: string): void;
  /** Planted: authentication notes when a sensor was seen. */
  doesAuthenticationWrite?: boolean;
  limitMs?: number;
}

const limitMs = 15_000;
/** More than the monitor has connections for writing. */
const uploadsWaiting = 40;
const fetchesAtOnce = 10;

export async function prove(options: PlanOptions) {
  const { late, worstMs } = await fetchPlans(options);
  const planted = await fetchPlans({ ...options, n: 5, doesAuthenticationWrite: true, limitMs: 2_000 });
  options.report(`planted write in authentication: ${planted.late} of 5 plans late`);
  return {
    claim: `plans fetched while uploads wait for locks on every connection: none takes 15 s (longest ${Math.round(worstMs)} ms)`,
    tried: options.n,
    failures: late,
    plantedBugsCaught: `${planted.late > 0 ? 1 : 0} of 1`,
  };
}

/** Fetches `n` plans with everything locked; says how many were late or refused, and how long the slowest took. */
export async function fetchPlans(options: PlanOptions): Promise<{ late: number; worstMs: number }> {
  const { n, limitMs: limit = limitMs } = options;
  await using world = await createMonitorWorld();
  const enrolled = await world.enrol('node-2');
  // The uploads that wait are of one sensor, which sends no more than a few at a time.
  const intake = { ...createIntake({ clock: systemClock }), admit: () => () => {} };
  const sensors = options.doesAuthenticationWrite ? noteSeen(world) : world.sensors;
  const http = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    // Live windows, scans and capture files have no part in this.
    routes: (app) =>
      registerSensorApi(app, {
        ...{ sensors, intake, inbox: world.inbox },
        ...{ live: null as never, evidence: null as never, scans: null as never },
      }),
  });
  await http.start();
  const headers = { authorization: `Bearer ${enrolled.credential}` };
  const locks = await world.database.pool.connect();
  await locks.query('begin');
  await locks.query(
    'lock table inbox_uploads, inbox_spools, sensor_contacts, captures in access exclusive mode',
  );
  await locks.query('select 1 from sensors for update');
  await locks.query('select 1 from sites for update');
  const body = Buffer.from(compressUpload(encodeUpload(createSpool().upload([captureMinute()]))));
  const type = { 'content-type': 'application/x-protobuf', 'content-encoding': 'zstd' };
  const uploads = Array.from({ length: uploadsWaiting }, () =>
    fetch(`${http.url}/agent/v1/telemetry`, { method: 'POST', headers: { ...headers, ...type }, body }).catch(
      () => {},
    ),
  );
  let late = 0;
  let worstMs = 0;
  try {
    await waitForWaiting(world);
    for (let done = 0; done < n; done += fetchesAtOnce) {
      await Promise.all(
        Array.from({ length: Math.min(fetchesAtOnce, n - done) }, async () => {
          const begun = performance.now();
          const signal = AbortSignal.timeout(limit);
          const isInTime = await fetch(`${http.url}/agent/v1/plan`, { headers, signal })
            .then(async (answer) => (await answer.text()).length > 0 && answer.status === 200)
            .catch(() => false);
          if (!isInTime) late += 1;
          worstMs = Math.max(worstMs, performance.now() - begun);
        }),
      );
    }
    return { late, worstMs };
  } finally {
    await locks.query('rollback');
    locks.release();
    await Promise.all(uploads);
    await http.stop();
  }
}

/** Until an upload's transaction stands before the lock. */
async function waitForWaiting(world: MonitorWorld): Promise<void> {
  for (;;) {
    const { rows } = await world.database.reader.executeQuery<{ n: number }>(
      (await import('kysely')).CompiledQuery.raw(
        'select count(*)::int as n from pg_locks l join pg_database d on d.oid = l.database where not granted and datname = current_database()',
      ),
    );
    if (rows[0]!.n > 0) return;
  }
}

function noteSeen(world: MonitorWorld): MonitorWorld['sensors'] {
  const sensors = createSensors({
    db: () => world.database.db,
    reader: () => world.database.reader,
    sections: planSections(),
  });
  return {
    ...sensors,
    async checkCredential(token, origin) {
      const checked = await sensors.checkCredential(token, origin);
      if (checked.isTaken)
        await world.rows('update sensors set node = node where id = $1', [checked.sensor.id]);
      return checked;
    },
  };
}
