/** The sensor API on its own port and database, with enrolled sensors. */
import { silentReporter } from '#common/reporter/index.ts';
import { telemetryContentType } from '#contracts/sensor-api/http.ts';
import type { Intake } from '#monitor/intake/index.ts';
import { createLive, createPostgresStore } from '#monitor/live/index.ts';
import { registerSensorApi } from '#monitor/surfaces/sensor-api/index.ts';
import { createMonitorWorld, type MonitorWorld } from '#monitor/testing/index.ts';
import { createHttpServer } from '#service-kit/http/index.ts';

export interface IntakeServer extends AsyncDisposable {
  world: MonitorWorld;
  enrol: MonitorWorld['enrol'];
  /** Sends a body like a sensor. `code` is that of the error, or null. */
  post(
    wire: 'telemetry' | 'live',
    credential: string,
    body: Uint8Array,
    encoding: string,
  ): Promise<{ status: number; code: string | null; receipt: string | null }>;
}

/** Starts the server with this intake. */
export async function startIntakeServer(intake: Intake): Promise<IntakeServer> {
  const world = await createMonitorWorld({ intake });
  const liveBounds = { historySeconds: 600, historyMax: 10_000 };
  const live = createLive({ intake, store: createPostgresStore(() => world.database.db, liveBounds) });
  const http = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) =>
      registerSensorApi(app, {
        ...{ sensors: world.sensors, intake, inbox: world.inbox, live },
        // Capture files and scans have no part in this.
        ...{ evidence: null as never, scans: null as never },
      }),
  });
  await http.start();
  return {
    world,
    enrol: world.enrol,
    async post(wire, credential, body, encoding) {
      const answer = await fetch(`${http.url}/agent/v1/${wire}`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${credential}`,
          'content-type': telemetryContentType,
          'content-encoding': encoding,
        },
        body: body as Uint8Array<ArrayBuffer>,
      });
      const json = (await answer.json()) as { receipt?: string; error?: { code: string } };
      return { status: answer.status, code: json.error?.code ?? null, receipt: json.receipt ?? null };
    },
    async [Symbol.asyncDispose]() {
      await http.stop();
      await world[Symbol.asyncDispose]();
    },
  };
}
