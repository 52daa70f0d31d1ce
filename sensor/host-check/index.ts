import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, release } from 'node:os';
import { describeError, hasCode } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import type { SensorConfig } from '#sensor/config.ts';
import { readIdentity, type SensorIdentity } from '#sensor/enrolment/index.ts';
import { createMonitorClient, type MonitorAddress, refusalMessage } from '#sensor/monitor-client/index.ts';
import { parsePlan } from '#sensor/plan/index.ts';
import { findNmap, findScanLimits } from '#sensor/scanner/index.ts';
import { checkPrograms, type Finding, finding } from './check-capture.ts';

/**
 * Checks by trial what this host can do for a sensor: opens sockets, writes files, calls the monitor. Changes nothing
 * and never throws.
 */

export { checkCapture, type Finding, finding } from './check-capture.ts';

const capabilityNetRaw = 13n;
const capabilityNetAdmin = 12n;
const mebibyte = 1024 * 1024;
/** Memory of the engine, in addition to the rings. */
const engineMiB = 128;
/** Maximum compressed size of one minute in the spool: a busy capture with all its rows. */
const fullMinuteBytes = 160 * 1024;
/** Part of the spool for uploads. */
const uploadShare = 0.8;

/** Checks kernel, capabilities, memory, disk and programs. */
export function checkHost(config: SensorConfig): Finding[] {
  return [
    checkKernel(),
    ...checkRights(),
    checkMemory(config),
    checkCores(config),
    ...checkDisk(config),
    ...checkPrograms(),
    ...checkScanner(),
  ];
}

function checkKernel(): Finding {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  const isAtLeast = (a: number, b: number) => major > a || (major === a && minor >= b);
  if (!isAtLeast(4, 20))
    return finding('bad', 'kernel', `Linux ${release()} is too old: 4.20 or newer is required.`);
  if (!isAtLeast(6, 2)) {
    return finding(
      'info',
      'kernel',
      `Linux ${release()} is supported. It can not describe merged UDP: once that occurs, merged packets are counted as one.`,
    );
  }
  return finding('ok', 'kernel', `Linux ${release()} is supported.`);
}

function checkRights(): Finding[] {
  const effective = BigInt(`0x${/CapEff:\s*(\w+)/.exec(readText('/proc/self/status'))?.[1] ?? '0'}`);
  const has = (capability: bigint) => ((effective >> capability) & 1n) === 1n;
  const who = process.getuid?.() === 0 ? 'root' : `user ${process.getuid?.()}`;
  const raw = has(capabilityNetRaw)
    ? finding('ok', 'capability', `CAP_NET_RAW is present (${who}); capturing needs nothing else.`)
    : finding(
        'bad',
        'capability',
        `CAP_NET_RAW is missing (${who}): run as root, or under systemd with AmbientCapabilities=CAP_NET_RAW.`,
      );
  const admin = has(capabilityNetAdmin)
    ? finding('info', 'capability', 'CAP_NET_ADMIN is present too; the sensor does not need it.')
    : null;
  return admin ? [raw, admin] : [raw];
}

function checkMemory(config: SensorConfig): Finding {
  const rings = config.captures.reduce(
    (sum, { source, members }) => sum + (source.kind === 'live' ? source.ringMiB * (members ?? 1) : 0),
    0,
  );
  const freeMiB = Number(/MemAvailable:\s*(\d+)/.exec(readText('/proc/meminfo'))?.[1] ?? 0) / 1024;
  const needed = rings + engineMiB;
  const text = `${rings} MiB of rings and up to ${engineMiB} MiB for the sensor; ${Math.floor(freeMiB)} MiB are free.`;
  return freeMiB < needed * 1.5
    ? finding('warn', 'memory', `${text} That is low: lower SVC_SENSOR_RING_MIB.`)
    : finding('ok', 'memory', text);
}

function checkCores(config: SensorConfig): Finding {
  const threads = config.captures.reduce((sum, { members }) => sum + (members ?? 1), 0);
  const cores = availableParallelism();
  const text = `${threads} capturing thread${threads === 1 ? '' : 's'} on ${cores} core${cores === 1 ? '' : 's'}.`;
  return threads > cores
    ? finding('warn', 'cores', `${text} More threads than cores bring no gain: lower SVC_SENSOR_FANOUT.`)
    : finding('ok', 'cores', text);
}

function checkDisk(config: SensorConfig): Finding[] {
  const { stateDirectory, spoolBytesMax } = config;
  try {
    makeFolders(stateDirectory, 0o700);
    const disk = statfsSync(stateDirectory);
    const free = disk.bavail * disk.bsize;
    const captures = Math.max(1, config.captures.length);
    const hours = (spoolBytesMax * uploadShare) / (fullMinuteBytes * captures) / 60;
    const outage = `bridges an outage of the monitor of at least ${hours.toFixed(1)} hours at full load, longer with ordinary traffic`;
    const room = `${mib(spoolBytesMax)} for the spool, ${mib(free)} free in ${stateDirectory}`;
    return free < spoolBytesMax
      ? [
          finding(
            'warn',
            'disk',
            `${room}: the disk fills before the spool does. Free some, or lower SVC_SENSOR_SPOOL_MIB.`,
          ),
        ]
      : [finding('ok', 'disk', `${room}; it ${outage}.`)];
  } catch (error) {
    return [
      finding(
        'bad',
        'disk',
        `${stateDirectory} is not writable: ${describeError(error)}. Set SVC_SENSOR_STATE_DIR or give it to this user.`,
      ),
    ];
  }
}

function mib(bytes: number): string {
  return `${Math.floor(bytes / mebibyte).toLocaleString('en-US')} MiB`;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Whether ports of this host's servers can be scanned, and within which limits. Makes and removes a control group on trial. */
function checkScanner(): Finding[] {
  const nmap = findNmap();
  const program = nmap
    ? finding('ok', 'nmap', `Found as ${nmap}; it can scan this host's servers.`)
    : finding(
        'warn',
        'nmap',
        "Not found, so this host's servers can not be scanned for open ports: apt-get install nmap.",
      );
  return [program, checkLimits()];
}

function checkLimits(): Finding {
  const limits = findScanLimits();
  if (typeof limits === 'string') return finding('warn', 'scan limits', `No port is scanned here: ${limits}`);
  const { version, missing } = limits;
  const lacks = missing.length === 0 ? '' : `, without ${missing.join(', ')}`;
  return finding(
    'ok',
    'scan limits',
    `A scan gets one CPU, 512 MiB and 64 tasks by control groups of version ${version}${lacks}.`,
  );
}

const timeoutMs = 5000;
/** Minutes are UTC; with a larger clock error they are stored under the wrong time. */
const clockOffBadMs = 30_000;
const clockOffWarnMs = 2000;

/** Checks the enrolment, the monitor, and this host's clock against the monitor's. */
export async function checkMonitor(config: SensorConfig): Promise<Finding[]> {
  let identity: SensorIdentity | null = null;
  const findings: Finding[] = [];
  try {
    identity = readIdentity(config.stateDirectory);
    findings.push(
      identity
        ? finding(
            'ok',
            'enrolment',
            `Enrolled as sensor ${identity.sensorId} of the site ${identity.siteName}.`,
          )
        : finding(
            'bad',
            'enrolment',
            `Not enrolled: create a token on the site in the monitor, then enter it in ${config.commandName} enrol.`,
          ),
    );
  } catch (error) {
    findings.push(finding('bad', 'enrolment', describeError(error)));
  }
  const { url, allowsInsecureHttp } = config.monitor;
  if (allowsInsecureHttp && !isPrivateTransport(url))
    findings.push(
      finding(
        'warn',
        'transport',
        `${url} is not encrypted: every device on the path can read the credential. SVC_ALLOW_INSECURE_HTTP=1 allows it.`,
      ),
    );
  return [...findings, ...(await askMonitor(config.monitor, identity))];
}

async function askMonitor(address: MonitorAddress, identity: SensorIdentity | null): Promise<Finding[]> {
  const { url } = address;
  const askedAt = Date.now();
  try {
    const answer = await createMonitorClient(address).request({
      method: 'GET',
      path: '/plan',
      timeoutMs,
      ...(identity ? { credential: identity.credential } : {}),
    });
    const clock = checkClock(answer.headers.get('date'), (askedAt + Date.now()) / 2);
    if (answer.status === 200) {
      const takesLive = parsePlan(answer.json)?.takesLive ?? false;
      const live = takesLive ? 'accepts live windows' : 'accepts no live windows';
      return [
        finding('ok', 'monitor', `${url} answers, knows this sensor and ${live}.`),
        ...checkCredential(answer.json),
        ...clock,
      ];
    }
    if (answer.status === 401 && !identity) return [finding('ok', 'monitor', `${url} answers.`), ...clock];
    return [finding('bad', 'monitor', `${url} refuses this sensor: ${refusalMessage(answer)}.`), ...clock];
  } catch (error) {
    if (hasCode(error, 'transport.insecure'))
      return [finding('bad', 'monitor', `${describeError(error)}. Minutes are kept in the spool meanwhile.`)];
    return [
      finding(
        'bad',
        'monitor',
        `${describeError(error)} Set SVC_MONITOR_URL. Minutes are kept in the spool meanwhile.`,
      ),
    ];
  }
}

/** Expiry of the credential; nothing when an older monitor does not report it. */
function checkCredential(plan: unknown): Finding[] {
  const { credential } = (plan ?? {}) as { credential?: { expires_at?: unknown } };
  if (credential === undefined) return [];
  const { expires_at: end } = credential;
  return typeof end === 'string'
    ? [finding('ok', 'credential', `Valid until ${end}; a running sensor renews it in time.`)]
    : [finding('info', 'credential', 'Has no expiry until the sensor runs, which renews it at once.')];
}

function checkClock(date: string | null, nowMs: number): Finding[] {
  const theirs = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(theirs)) return [];
  // The header has whole seconds.
  const offMs = Math.max(0, Math.abs(nowMs - theirs - 500) - 500);
  const seconds = (offMs / 1000).toFixed(1);
  if (offMs > clockOffBadMs)
    return [
      finding(
        'bad',
        'clock',
        `${seconds} s off the monitor's clock: minutes would get the wrong time. Set the clock and use NTP.`,
      ),
    ];
  if (offMs > clockOffWarnMs)
    return [finding('warn', 'clock', `${seconds} s off the monitor's clock. Use NTP.`)];
  return [finding('ok', 'clock', "Agrees with the monitor's.")];
}
