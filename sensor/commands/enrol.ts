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
  /** The token itself. Without it, the token is read from `tokenFile` or standard input. */
  token?: string;
  tokenFile?: string;
  /** The hypervisor node's name; SVC_SENSOR_NODE by default. */
  node?: string;
}

/** Enrols and prints the site. Throws a `CodedError` when there is a credential already or the monitor refuses. */
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
        `Remove ${config.stateDirectory}/credential.json to enrol it again.`,
    );
  }
  const { url, allowsInsecureHttp, insecureAdvice } = config.monitor;
  // Before the token is read.
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

/** An argument is in the process list, which every user of the host can read; a file and a pipe are not. */
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
      `The token can not be read: ${describeError(error)}.`,
      {},
      error,
    );
  }
}

/** Reads one line of standard input, with a prompt on a terminal. */
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
