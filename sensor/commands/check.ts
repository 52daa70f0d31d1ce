/**
 * `./svc sensor check`: reports what this host supports and lacks. Exit code 0 when nothing is bad, 1 otherwise.
 */
import { readSensorConfig, type SensorConfig } from '#sensor/config.ts';
import { checkCapture, checkHost, checkMonitor, type Finding, finding } from '#sensor/host-check/index.ts';
import { followSensor, type SensorStatus } from '#sensor/local-status/index.ts';
import { findRunning } from './find-running.ts';

const signs = { ok: 'ok  ', info: 'note', warn: 'WARN', bad: 'BAD ' } as const;
const colours = { ok: 32, info: 36, warn: 33, bad: 31 } as const;
const patienceMs = 2000;

export interface CheckOptions {
  interface?: string;
  json?: boolean;
}

/** Prints the findings. Resolves with the exit code. */
export async function check(
  options: CheckOptions,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  const config = withInterface(readSensorConfig(environment), options.interface);
  const findings = checkHost(config);
  if (config.captures.length === 0) {
    const text =
      'No interface is configured: set SVC_SENSOR_CAPTURES, such as uplink:eth0,bridge:br0, or give --interface.';
    findings.push(finding('bad', 'captures', text));
  }
  for (const capture of config.captures) findings.push(...(await checkCapture(capture, config.hasFilter)));
  findings.push(...(await checkMonitor(config)));
  findings.push(...findRunning(await askRunning(config.stateDirectory)));
  const isGood = findings.every((one) => one.state !== 'bad');
  process.stdout.write(
    options.json ? `${JSON.stringify({ ok: isGood, findings }, null, 2)}\n` : renderFindings(findings),
  );
  return isGood ? 0 : 1;
}

function withInterface(config: SensorConfig, name: string | undefined): SensorConfig {
  if (name === undefined) return config;
  const known = config.captures.find((capture) => capture.name === name);
  const made = { name, role: 'uplink', source: { kind: 'live', interfaceName: name, ringMiB: 128 } } as const;
  return { ...config, captures: [known ?? made] };
}

function askRunning(stateDirectory: string): Promise<SensorStatus | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), patienceMs);
    const finish = (status: SensorStatus | null) => {
      clearTimeout(timer);
      resolve(status);
    };
    void followSensor(
      stateDirectory,
      (line) => line.kind === 'status' && finish(line.status),
      () => finish(null),
    ).then((connection) => {
      if (!connection) finish(null);
      // One line is enough. An open connection would keep this process alive.
      else setTimeout(() => connection.close(), 200);
    });
  });
}

function renderFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map((one) => one.subject.length));
  const paint = (text: string, colour: number) =>
    process.stdout.isTTY ? `\x1b[${colour}m${text}\x1b[0m` : text;
  const lines = findings.map(
    ({ state, subject, text }) => `${paint(signs[state], colours[state])}  ${subject.padEnd(width)}  ${text}`,
  );
  const bad = findings.filter((one) => one.state === 'bad').length;
  const warned = findings.filter((one) => one.state === 'warn').length;
  const verdict =
    bad > 0
      ? `This host is not ready: ${bad} to fix.`
      : warned > 0
        ? `This host is usable, with ${warned} to check.`
        : 'This host is ready.';
  return `${lines.join('\n')}\n\n${verdict}\n`;
}
