/**
 * The sensor API under `/agent/v1` (contracts/sensor-api): enrolment, credentials, plan, telemetry, live
 * windows.
 *
 * Nothing slow happens here: an upload is validated, stored durably and receipted; a worker does the rest. A sensor is
 * known before its body is read, and 400, 413 and 422 mean to it that it must never send the same again.
 */
import type { FastifyInstance } from 'fastify';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { Intake } from '#monitor/intake/index.ts';
import type { Live } from '#monitor/live/index.ts';
import type { Sensors } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { registerCredential } from './credential.routes.ts';
import { registerEnrol } from './enrol.routes.ts';
import { registerLive } from './live.routes.ts';
import { registerPlan } from './plan.routes.ts';
import { registerTelemetry } from './telemetry.routes.ts';

export interface SensorApiDeps {
  sensors: Sensors;
  intake: Intake;
  inbox: Inbox;
  live: Live;
}

export async function registerSensorApi(app: App, deps: SensorApiDeps): Promise<void> {
  await app.register(
    async (plugin) => {
      const scope = plugin as unknown as FastifyInstance;
      registerEnrol(scope, deps);
      registerCredential(scope, deps);
      registerPlan(scope, deps);
      await registerTelemetry(scope, deps);
      await registerLive(scope, deps);
    },
    { prefix: '/agent/v1' },
  );
}
