/** `./svc sensor enrol`: exchanges a one-time token for this sensor's credential. */
import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline/promises';
import { systemClock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { requirePrivateTransport } from '#common/transport/index.ts';
import { readSensorConfig } from '#sensor/config.ts';
import { enrol, readIdentity } from '#sensor/enrolment/index.ts';
import { createMonitorClient } from '#sensor/monitor-client/index.ts';
import { sensorVersion } from '#sensor/version.ts';

export interface EnrolCommandInput {
  /** The token itself; absent: it is read from `tokenFile`, else from standard input. */
  token?: string;
  tokenFile?: string;
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
  const { url, allowsInsecureHttp, insecureAdvice } = config.monitor;
  // Before the token is asked for.
  requirePrivateTransport(url, { isAllowed: allowsInsecureHttp, advice: insecureAdvice });
  const identity = await enrol({
    client: createMonitorClient(config.monitor),
    stateDirectory: config.stateDirectory,
    token: await readToken(input),
    hostName: hostname(),
    node: input.node ?? config.node,
    sensorVersion,
    clock: systemClock,
    reporter: createReporter({ program: 'sensor', format: config.logFormat, level: 'warn' }),
    patienceMs: 0,
  });
  process.stdout.write(`Enrolled on site ${identity.siteName} as sensor ${identity.sensorId}.\n`);
}

/** An argument stands in the process list, where every user of the host can read it; a file and a pipe do not. */
async function readToken({ token, tokenFile }: EnrolCommandInput): Promise<string> {
  if (token !== undefined) return token;
  const text = tokenFile === undefined ? await askForToken() : await readTokenFile(tokenFile);
  if (text.trim() !== '') return text.trim();
  throw new CodedError(
    'enrolment.no_token',
    'No token was given. Type it when asked, pipe it into this command, or name its file with --token-file.',
  );
}

async function readTokenFile(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new CodedError(
      'enrolment.no_token',
      `The token can't be read: ${describeError(error)}.`,
      {},
      error,
    );
  }
}

/** One line of standard input, asked for where a person sits at it. */
async function askForToken(): Promise<string> {
  if (process.stdin.isTTY) process.stderr.write('Enrolment token: ');
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
  }
}
