import { readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, release } from 'node:os';
import { describeError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { SensorConfig } from '#sensor/config.ts';
import { findNmap, findScanLimits } from '#sensor/scanner/index.ts';
import { checkPrograms } from './check-capture.ts';
import { type Finding, finding } from './finding.ts';

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
