/** The sensor's settings; the only reader of its environment. */
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import {
  booleanSetting,
  choiceSetting,
  httpUrlSetting,
  integerSetting,
  optionalTextSetting,
  readSettings,
  type Setting,
  textSetting,
} from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { logFormatSetting, logLevelSetting } from '#common/reporter/settings.ts';
import { allowInsecureHttpSetting } from '#common/transport/index.ts';
import type { CaptureRole, CaptureSpec } from './collection/index.ts';
import type { MonitorAddress } from './monitor-client/index.ts';

interface NamedCapture {
  name: string;
  role: CaptureRole;
}

const capturesSetting: Setting<NamedCapture[] | null> = {
  name: 'SVC_SENSOR_CAPTURES',
  sentence:
    'Interfaces to listen on, each with its role: the WAN uplink or a LAN bridge, such as uplink:eth0,bridge:br0.',
  defaultText: 'unset',
  parse: (text) => (text === undefined ? null : parseCaptures(text)),
};

/** Parses `uplink:eth0,bridge:br0`. Throws an `Error` whose message completes "SVC_SENSOR_CAPTURES …". */
function parseCaptures(text: string): NamedCapture[] {
  const captures = text.split(',').map((entry) => {
    const match = /^(uplink|bridge):([^\s/:,]{1,15})$/.exec(entry.trim());
    if (!match) {
      throw new Error(
        `must be a list like uplink:eth0,bridge:br0; "${entry.trim()}" is not a role and an interface`,
      );
    }
    return { role: match[1] as CaptureRole, name: match[2]! };
  });
  const names = new Set(captures.map((capture) => capture.name));
  if (names.size !== captures.length) throw new Error('names an interface twice');
  return captures;
}

const outerNamesSetting: Setting<string[] | null> = {
  name: 'SVC_SENSOR_ECH_OUTER_NAMES',
  sentence:
    'Public names on the outside of encrypted hellos (ECH), separated by commas. They belong to providers and name no application. Unset means the well-known ones.',
  defaultText: 'unset',
  parse: (text) => (text === undefined ? null : parseNames(text)),
};

/** Lower case, without final dot. Throws an `Error` whose message completes "SVC_SENSOR_ECH_OUTER_NAMES …". */
function parseNames(text: string): string[] {
  return text.split(',').map((entry) => {
    const name = entry.trim().toLowerCase().replace(/\.$/, '');
    if (!/^[a-z0-9_-]+(\.[a-z0-9_-]+)+$/.test(name)) {
      throw new Error(`must be a list of names like cloudflare-ech.com; "${entry.trim()}" is not one`);
    }
    return name;
  });
}

export const sensorSettings = {
  dataDirectory: textSetting('SVC_DATA_DIR', './data', 'The directory for all data.'),
  monitorUrl: httpUrlSetting(
    'SVC_MONITOR_URL',
    'http://127.0.0.1:8090',
    "The monitor's URL: https, or http on this machine.",
  ),
  allowInsecureHttp: allowInsecureHttpSetting,
  stateDirectory: optionalTextSetting(
    'SVC_SENSOR_STATE_DIR',
    'The directory of the credential and the spool; unset means the directory sensor in the data directory.',
  ),
  captures: capturesSetting,
  outerNames: outerNamesSetting,
  replayFile: optionalTextSetting(
    'SVC_SENSOR_REPLAY',
    'A capture file to replay in a loop, shifted to now, instead of listening.',
  ),
  enrolmentToken: optionalTextSetting(
    'SVC_SENSOR_ENROLMENT_TOKEN',
    'One-time token, used once while this sensor has no credential.',
  ),
  node: optionalTextSetting(
    'SVC_SENSOR_NODE',
    "The hypervisor node's name in operations; unset means the host's name.",
  ),
  spoolMiB: integerSetting(
    'SVC_SENSOR_SPOOL_MIB',
    160,
    { min: 4, max: 16_384, unit: 'MiB' },
    'Size limit of the spool while the monitor is unreachable; pending uploads take at most four fifths.',
  ),
  captureMethod: choiceSetting(
    'SVC_SENSOR_CAPTURE_METHOD',
    ['auto', 'ring', 'tcpdump'],
    'auto',
    'Capture method: the packet ring, a tcpdump process, or auto: the ring where it works, otherwise tcpdump.',
  ),
  fanout: integerSetting(
    'SVC_SENSOR_FANOUT',
    1,
    { min: 1, max: 8 },
    'Threads for each interface; each flow stays on one thread. Use more than one when one core is not enough.',
  ),
  ringMiB: integerSetting(
    'SVC_SENSOR_RING_MIB',
    128,
    { min: 2, max: 2048, unit: 'MiB' },
    'Memory of the packet ring of each capture; the threads of a capture share it.',
  ),
  portScans: booleanSetting(
    'SVC_SENSOR_PORT_SCANS',
    true,
    "Scan this host's servers for open ports where the monitor plans it.",
  ),
  scanCpuPercent: integerSetting(
    'SVC_SENSOR_SCAN_CPU_PERCENT',
    85,
    { min: 1, max: 101, unit: '%' },
    'Scans are paused while all CPUs together are as busy as this; 101 means never.',
  ),
  scanCpuWaitPercent: integerSetting(
    'SVC_SENSOR_SCAN_CPU_WAIT_PERCENT',
    10,
    { min: 1, max: 101, unit: '%' },
    'Scans are paused while tasks wait for a CPU for this share of the time (PSI, some avg10); 101 means never.',
  ),
  filter: booleanSetting(
    'SVC_SENSOR_FILTER',
    false,
    'Attach the filter to uplinks (XDP), so that rules of the monitor can drop attacks there. The monitor says what is dropped, and nothing is without such a rule.',
  ),
  logFormat: logFormatSetting,
  logLevel: logLevelSetting,
};

/** Of port scans. */
export interface ScanSettings {
  isOn: boolean;
  cpuPercent: number;
  cpuWaitPercent: number;
}

export interface SensorConfig {
  monitor: MonitorAddress;
  stateDirectory: string;
  captures: CaptureSpec[];
  /** The file to replay, or null when the sensor captures live. */
  replayFile: string | null;
  enrolmentToken: string | null;
  node: string;
  spoolBytesMax: number;
  scans: ScanSettings;
  /** Attacks can be dropped at uplinks. */
  hasFilter: boolean;
  /** Command name of this program, for messages. */
  commandName: string;
  /** Socket of the service manager, and its watchdog timeout; null without one. */
  notifySocket: string | null;
  watchdogMs: number | null;
  logFormat: 'text' | 'json';
  logLevel: 'debug' | 'info' | 'warn' | 'error';
}

/**
 * Reads the settings. Throws `config.invalid` with the correction. `captures` may be empty, because some commands need
 * none.
 */
export function readSensorConfig(environment: Readonly<Record<string, string | undefined>>): SensorConfig {
  const values = readSettings(sensorSettings, environment);
  if (values.captures && values.replayFile) {
    throw new CodedError('config.invalid', 'Set SVC_SENSOR_CAPTURES or SVC_SENSOR_REPLAY, not both.');
  }
  const { fanout, captureMethod: method } = values;
  const ringMiB = Math.max(2, Math.floor(values.ringMiB / fanout));
  const outerNames = values.outerNames ? { outerNames: values.outerNames } : {};
  const captures: CaptureSpec[] = values.replayFile
    ? [{ name: 'replay', role: 'uplink', source: { kind: 'replay', file: resolve(values.replayFile) } }]
    : (values.captures ?? []).map(({ name, role }) => ({
        name,
        role,
        members: fanout,
        ...outerNames,
        source: { kind: 'live', interfaceName: name, ringMiB, method },
      }));
  const commandName = environment.SVC_COMMAND_NAME ?? './svc sensor';
  return {
    monitor: {
      url: values.monitorUrl!,
      allowsInsecureHttp: values.allowInsecureHttp,
      insecureAdvice: insecureAdvice(commandName),
    },
    stateDirectory: resolve(values.stateDirectory ?? join(values.dataDirectory, 'sensor')),
    captures,
    replayFile: values.replayFile,
    enrolmentToken: values.enrolmentToken,
    node: values.node ?? hostname(),
    spoolBytesMax: values.spoolMiB * 1024 * 1024,
    scans: {
      isOn: values.portScans,
      cpuPercent: values.scanCpuPercent,
      cpuWaitPercent: values.scanCpuWaitPercent,
    },
    hasFilter: values.filter,
    commandName,
    notifySocket: environment.NOTIFY_SOCKET || null,
    watchdogMs: Number(environment.WATCHDOG_USEC) > 0 ? Number(environment.WATCHDOG_USEC) / 1000 : null,
    logFormat: values.logFormat,
    logLevel: values.logLevel,
  };
}

/** The packaged commands and service read one settings file; elsewhere there is only the environment. */
function insecureAdvice(commandName: string): string {
  const place = commandName === 'svc-sensor' ? '/etc/svc-sensor/sensor.env' : "the sensor's environment";
  return (
    'Give SVC_MONITOR_URL an https address. If only svc uses the network between them, ' +
    `add this line to ${place} instead: ${allowInsecureHttpSetting.name}=1`
  );
}
