/** `./svc sensor enrol`: exchanges a one-time token for this sensor's credential. */
import { hostname } from 'node:os';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { readSensorConfig } from '#sensor/config.ts';
import { enrol, readIdentity } from '#sensor/enrolment/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { sensorVersion } from '#sensor/version.ts';

export interface EnrolCommandInput {
  token: string;
  /** The hypervisor node's name; unset means SVC_SENSOR_NODE. */
  node?: string;
}

/** Enrols and says where. Throws a `CodedError` when there is a credential already or the monitor refuses. */
export async function enrolCommand(
  input: EnrolCommandInput,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const config = readSensorConfig(environment);
  const existing = readIdentity(config.stateDirectory);
  if (existing) {
    throw new CodedError(
      'enrolment.exists',
      `This sensor is enrolled already, on site ${existing.siteName}. ` +
        `Remove ${config.stateDirectory}/credential.json to enrol it anew.`,
    );
  }
  const identity = await enrol({
    client: createMonitorClient(config.monitorUrl),
    stateDirectory: config.stateDirectory,
    token: input.token,
    hostName: hostname(),
    node: input.node ?? config.node,
    sensorVersion,
    clock: systemClock,
    reporter: createReporter({ program: 'sensor', format: config.logFormat, level: 'warn' }),
    patienceMs: 0,
  });
  process.stdout.write(`Enrolled on site ${identity.siteName} as sensor ${identity.sensorId}.\n`);
}
