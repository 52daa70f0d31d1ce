/**
 * `./svc sensor check`: reports what this host supports and lacks. Exit code 0 when nothing is bad, 1 otherwise.
 */
import { readSensorConfig, type SensorConfig } from '#sensor/config.ts';
import { checkCapture, checkHost, checkMonitor, type Finding, finding } from '#sensor/host-check/index.ts';
import { describeEvidence, followSensor, type SensorStatus } from '#sensor/local-status/index.ts';

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

// What `sensor check` says of the sensor that runs on this host.

/** State of the sensor that runs here. */
export function findRunning(status: SensorStatus | null): Finding[] {
  if (!status)
    return [
      finding('info', 'running', 'No sensor runs here with this state directory, or you may not access it.'),
    ];
  const { pendingUploads, roomMinutes } = status.spool;
  const room =
    roomMinutes === null
      ? ''
      : `; the spool has room for ${(roomMinutes / 60).toFixed(1)} hours at the present rate`;
  const since = new Date(status.startedAtMs).toISOString().slice(0, 16);
  return [
    finding(
      'ok',
      'running',
      `Version ${status.version} since ${since}Z, ${pendingUploads} uploads wait${room}.`,
    ),
    ...scanFindings(status),
    ...evidenceFindings(status),
    ...filterFindings(status),
    ...(status.incidents ?? []).map((one) =>
      finding(
        'info',
        `running ${one.capture}`,
        `${one.class} ${one.direction} on ${one.target} since ${new Date(one.startedAtMs).toISOString().slice(0, 19)}Z${one.drill ? ' (drill)' : ''}.`,
      ),
    ),
    ...status.captures.map((capture) => {
      const subject = `running ${capture.name}`;
      if (!capture.isListening)
        return finding('bad', subject, `Does not listen: ${capture.why ?? 'no plan yet'}`);
      const threads = capture.members > 1 ? ` with ${capture.members} threads` : '';
      return finding(
        capture.method === 'tcpdump' ? 'warn' : 'ok',
        subject,
        `Listens by ${capture.method}${threads}${capture.why ? `: ${capture.why}` : ''}${describeCounting(capture)}.`,
      );
    }),
  ];
}

/** Where totals are counted. A sensor of an older version says nothing of it. */
function describeCounting({ whyNotKernel }: SensorStatus['captures'][number]): string {
  if (whyNotKernel === undefined) return '';
  return whyNotKernel === null
    ? '; totals are counted in the kernel'
    : `; totals are counted frame by frame: ${whyNotKernel}`;
}

function filterFindings({ filters = [] }: SensorStatus): Finding[] {
  return filters.map(({ capture, rules, dropsPps, why }) =>
    finding(
      'info',
      `running ${capture}`,
      why === null
        ? `The filter has ${rules} rules and drops ${dropsPps} packets/s.`
        : `Nothing can be dropped: ${why}.`,
    ),
  );
}

/** Port scans of the sensor that runs here. A sensor of an older version says nothing of them. */
function scanFindings({ scans }: SensorStatus): Finding[] {
  if (scans === undefined) return [];
  const subject = 'running scans';
  if (scans === null)
    return [finding('info', subject, 'Port scans are off: SVC_SENSOR_PORT_SCANS, or a replay.')];
  const { why, scans: running, pendingReports } = scans;
  const count = `${running.length} run, ${pendingReports} reports wait`;
  return [
    finding(
      why === null ? 'ok' : 'info',
      subject,
      why === null ? `${count}.` : `No scan starts: ${why}; ${count}.`,
    ),
  ];
}

/** Capture files of attacks. A sensor of an older version says nothing of them. */
function evidenceFindings({ evidence }: SensorStatus): Finding[] {
  if (evidence === undefined) return [];
  const { takesEvidence, waitingFiles, dropped, why } = evidence;
  const subject = 'running evidence';
  const waits = `${describeEvidence(evidence)}.`;
  if (dropped > 0) {
    const text = `${waits} ${dropped} were dropped since the start: too many wait for the monitor.`;
    return [finding('warn', subject, text)];
  }
  if (why !== null && waitingFiles > 0)
    return [finding('warn', subject, `${waits} They do not reach the monitor: ${why}`)];
  if (takesEvidence || waitingFiles > 0) return [finding('ok', subject, waits)];
  return [finding('info', subject, 'The monitor takes no capture files of attacks.')];
}
