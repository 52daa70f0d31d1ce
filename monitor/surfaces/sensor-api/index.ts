/**
 * The sensor API under `/agent/v1` (contracts/sensor-api): enrolment, credentials, plan, telemetry, incidents, capture
 * files of attacks, live windows, port scans.
 *
 * An upload is validated, stored durably and acknowledged with a receipt; a worker processes it later. A sensor is
 * authenticated before its body is read. After 400, 413 and 422 a sensor must never send the same upload again.
 */
import type { FastifyInstance } from 'fastify';
import type { Evidence } from '#monitor/evidence/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Intake } from '#monitor/intake/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Scans } from '#monitor/scans/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { registerCredential } from './credential.routes.ts';
import { registerEnrol } from './enrol.routes.ts';
import { registerEvidence } from './evidence.routes.ts';
import { registerIncidents } from './incidents.routes.ts';
import { registerLive } from './live.routes.ts';
import { registerPlan } from './plan.routes.ts';
import { registerPortScans } from './port-scans.routes.ts';
import { registerTelemetry } from './telemetry.routes.ts';

export async function registerSensorApi(app: App, deps: SensorApiDeps): Promise<void> {
  await app.register(
    async (plugin) => {
      const scope = plugin as unknown as FastifyInstance;
      registerEnrol(scope, deps);
      registerCredential(scope, deps);
      registerPlan(scope, deps);
      await registerTelemetry(scope, deps);
      await registerIncidents(scope, deps);
      await registerEvidence(scope, deps);
      await registerLive(scope, deps);
      registerPortScans(scope, deps);
    },
    { prefix: '/agent/v1' },
  );
}

/** Features of the monitor that the sensor API uses. */
export interface SensorApiDeps {
  sensors: Sensors;
  intake: Intake;
  inbox: Inbox;
  live: Live;
  evidence: Pick<Evidence, 'receive'>;
  scans: Pick<Scans, 'readPlan' | 'receive'>;
}
