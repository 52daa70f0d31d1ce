/** Starts the demo world step by step, saying what it does, and ends with the addresses, the logins and a call. */

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CodedError, describeError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import type { WorldFacts } from '#lab/index.ts';
import { hasSystemPackages, installSystemPackages, systemPackages } from '#tools/system-packages.ts';
import type { DemoSettings } from './config.ts';
import {
  forgetLostKeys,
  type MonitorPart,
  noticeSecret,
  type OperationsPart,
  readPart,
  signOnKeys,
  writeDemoFile,
} from './demo-file.ts';
import { createProcesses, stopLeftovers } from './processes.ts';
import {
  customersServers,
  describeProgress,
  listNodesToEnrol,
  progressFileOf,
  readProgress,
  siteCidrs,
} from './simulated-site/index.ts';
import { isReady, type Steps, say, statusOf, waitFor } from './steps.ts';
import { databasePath } from './vulnerability-database/index.ts';

export interface Demo {
  stop(): Promise<void>;
}

/** As the simulated hypervisor calls itself. */
const simulatedNode = 'simulated-1';

export async function startDemo(
  settings: DemoSettings,
  isSimulated: boolean,
  signal: AbortSignal,
): Promise<Demo> {
  const startedMs = performance.now();
  prepareDataDir(settings.dataDir);
  const lock = await takeLock(settings.dataDir);
  await stopLeftovers(settings.dataDir);
  await requireFreePort(settings.operationsPort, 'SVC_OPERATIONS_PORT');
  await requireFreePort(settings.monitorPort, 'SVC_MONITOR_PORT');
  forgetLostKeys(settings.dataDir);
  const processes = createProcesses(settings.dataDir);
  const stop = async () => {
    await processes.stopAll();
    lock.close();
  };
  const steps: Steps = {
    settings,
    processes,
    signal,
    operationsUrl: `http://127.0.0.1:${settings.operationsPort}`,
    monitorUrl: `http://127.0.0.1:${settings.monitorPort}`,
  };
  try {
    const database = await startDatabase(steps);
    const lab = await startLab(steps, isSimulated);
    const operations = await startOperations(steps, lab);
    await database.ready();
    const monitor = await startMonitor(steps, lab, operations, database.url);
    await startSensor(steps, lab, monitor);
    const urls = { operations_url: steps.operationsUrl, monitor_url: steps.monitorUrl };
    const file = writeDemoFile(settings.dataDir, urls, operations, monitor);
    const seconds = (performance.now() - startedMs) / 1000;
    showWelcome(steps, { operations, monitor, file, seconds, hasLab: lab !== null });
    if (settings.hasHistory) startHistory(steps);
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

function prepareDataDir(dataDir: string): void {
  try {
    makeFolders(join(dataDir, 'demo'));
    accessSync(dataDir, constants.W_OK);
    accessSync(join(dataDir, 'demo'), constants.W_OK);
  } catch (error) {
    throw new CodedError(
      'data_dir.unwritable',
      `The data directory ${dataDir} can't be written (${describeError(error)}). Set SVC_DATA_DIR to a folder that you may write.`,
    );
  }
}

/** The kernel lets an abstract socket go when its process dies, so a killed demo never blocks the next. */
async function takeLock(dataDir: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy());
  const name = `\0svc-demo-${createHash('sha256').update(dataDir).digest('hex').slice(0, 32)}`;
  await new Promise<void>((done, fail) => {
    server.once('error', () =>
      fail(
        new CodedError(
          'demo.running',
          `A demo already runs on ${dataDir}. Stop it, or set SVC_DATA_DIR to another folder.`,
        ),
      ),
    );
    server.listen(name, done);
  });
  server.unref();
  return server;
}

/** Asked before anything starts: another program's answer on the port must not be taken for that of ours. */
async function requireFreePort(port: number, setting: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((done, fail) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const what =
        error.code === 'EADDRINUSE' ? 'is taken by another process' : `can't be used (${error.code})`;
      fail(new CodedError('demo.port_taken', `Port ${port} ${what}. Stop what holds it, or set ${setting}.`));
    });
    server.listen(port, '127.0.0.1', done);
  });
  await new Promise((done) => server.close(done));
}

async function startLab(steps: Steps, isSimulated: boolean): Promise<WorldFacts | null> {
  const reason = isSimulated ? 'asked for' : await whyNoLab();
  if (reason !== null) {
    say(`  network      simulated hypervisor, and a sensor that replays a recorded capture (${reason})\n`);
    return null;
  }
  const { dataDir, monitorPort } = steps.settings;
  const lab = steps.processes.start({
    name: 'lab',
    args: ['lab', 'up', '--old-services'],
    env: { SVC_DATA_DIR: dataDir, SVC_MONITOR_PORT: String(monitorPort) },
  });
  const find = async () => {
    const facts = readLabFacts(dataDir);
    return facts?.pid === lab.pid ? facts : null;
  };
  return waitFor(steps, lab, 'network', 'a lab of network namespaces with real guests', find);
}

async function startOperations(steps: Steps, lab: WorldFacts | null): Promise<OperationsPart> {
  const { dataDir, operationsPort } = steps.settings;
  const hypervisor: Record<string, string> = lab
    ? { SVC_OPERATIONS_HYPERVISOR: 'lab', SVC_OPERATIONS_LAB_SOCKET: lab.control_socket }
    : {
        SVC_OPERATIONS_HYPERVISOR: 'simulated',
        SVC_OPERATIONS_SIMULATED_GUESTS: recording.guests,
        ...telemetry,
      };
  const operations = steps.processes.start({
    name: 'operations',
    args: ['operations', 'serve'],
    env: {
      SVC_DATA_DIR: dataDir,
      SVC_OPERATIONS_PORT: String(operationsPort),
      SVC_DEMO_WORLD: '1',
      SVC_PAYMENT_GATEWAY: 'test',
      SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1',
      SVC_WEBHOOK_PRIVATE_TARGETS: '1',
      // The demo sends no mail: what it would send is shown at /dev/mail/.
      SVC_MAIL_FOLDER: join(dataDir, 'operations', 'mail'),
      ...attackOf(lab),
      SVC_OPERATIONS_NOTICE_URL: steps.monitorUrl,
      SVC_OPERATIONS_NOTICE_SECRET: noticeSecret(dataDir),
      // The monitor makes these two people first, so they are its first two.
      SVC_DEMO_SIGN_ON: JSON.stringify({
        key: signOnKeys(dataDir).operations.key,
        address: steps.monitorUrl,
        public_key: signOnKeys(dataDir).monitor.public_key,
        accounts: [
          { id: 1, email: 'operator@demo.example' },
          { id: 2, email: 'support@demo.example' },
        ],
      }),
      ...hypervisor,
      ...(steps.settings.hasHistory && simulatedServers(dataDir, lab)),
    },
  });
  return waitFor(steps, operations, 'operations', steps.operationsUrl, async () =>
    (await isReady(steps.operationsUrl)) ? readPart<OperationsPart>(dataDir, 'operations') : null,
  );
}

/** Simulated guests send nothing that a hypervisor could count. */
const telemetry = { SVC_BANDWIDTH_SOURCE: 'telemetry' };

/** Customers' servers at the simulated site, beside those of the lab or of the recording. */
function simulatedServers(dataDir: string, lab: WorldFacts | null): Record<string, string> {
  const { site, guests } = customersServers();
  const file = join(dataDir, 'demo', 'simulated-guests.json');
  const recorded = lab ? [] : (JSON.parse(readFileSync(recording.guests, 'utf8')) as object[]);
  writeFileSync(file, JSON.stringify([...recorded, ...guests]));
  return {
    SVC_OPERATIONS_SIMULATED_GUESTS: file,
    SVC_DEMO_SIMULATED_SITE: JSON.stringify(site),
    ...telemetry,
  };
}

async function startMonitor(
  steps: Steps,
  lab: WorldFacts | null,
  operations: OperationsPart,
  databaseUrl: string,
): Promise<MonitorPart> {
  const { dataDir, monitorPort } = steps.settings;
  const cidrs = lab ? lab.networks.map((network) => network.prefix) : recordingCidrs;
  const monitor = steps.processes.start({
    name: 'monitor',
    args: ['monitor', 'serve'],
    env: {
      SVC_DATA_DIR: dataDir,
      SVC_MONITOR_PORT: String(monitorPort),
      SVC_DEMO_WORLD: '1',
      SVC_ALLOW_DOCUMENTATION_ADDRESSES: '1',
      SVC_MAIL_FOLDER: join(dataDir, 'monitor', 'mail'),
      SVC_DEMO_OPERATIONS_URL: steps.operationsUrl,
      SVC_DEMO_OPERATIONS_TOKEN: operations.admin_token,
      SVC_DEMO_CLUSTER_ID: String(operations.cluster_id),
      SVC_DEMO_NOTICE_SECRET: noticeSecret(dataDir),
      SVC_DEMO_LOCAL_CIDRS: cidrs.join(','),
      SVC_DEMO_SIGN_ON: JSON.stringify({
        key: signOnKeys(dataDir).monitor.key,
        address: steps.operationsUrl,
        public_key: signOnKeys(dataDir).operations.public_key,
        accounts: [
          { id: operations.operator_id, email: 'operator@monitor.example' },
          { id: operations.support_id, email: 'viewer@monitor.example' },
        ].filter(({ id }) => id !== undefined),
      }),
      SVC_DEMO_NODE: lab?.node ?? simulatedNode,
      ...attackOf(lab),
      ...(steps.settings.hasHistory && {
        SVC_DEMO_SIMULATED_NODES: listNodesToEnrol(dataDir).join(','),
        SVC_DEMO_SIMULATED_CIDRS: siteCidrs.join(','),
        SVC_DEMO_SIMULATED_CLUSTER_ID: String(operations.simulated_cluster_id ?? 0),
      }),
      // A recording has no network that could be probed.
      ...(lab ? { SVC_DEMO_PROBES: `icmp:${lab.gateway_address},dns:${lab.resolver_address}` } : {}),
      // The demo has no internet; its copy of the database takes any key, so that requests need not be 6 s apart.
      SVC_NVD_URL: databaseUrl,
      SVC_NVD_API_KEY: 'demo',
      SVC_OPS_DDOS_SYNC_SECONDS: process.env.SVC_OPS_DDOS_SYNC_SECONDS ?? '5',
      SVC_OPS_INVENTORY_SYNC_SECONDS: process.env.SVC_OPS_INVENTORY_SYNC_SECONDS ?? '5',
    },
  });
  return waitFor(steps, monitor, 'monitor', steps.monitorUrl, async () =>
    (await isReady(steps.monitorUrl)) ? readPart<MonitorPart>(dataDir, 'monitor') : null,
  );
}

/** The command behind the button that attacks a server; a recording has no network to send packets on. */
function attackOf(lab: WorldFacts | null): Record<string, string> {
  const words = [
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    join(root, 'svc.ts'),
    'lab',
    'attack',
  ];
  return lab ? { SVC_DEMO_ATTACK: JSON.stringify(words) } : {};
}

/** Runs a program in a network namespace; "ip netns exec" alone hides the control groups, which limit port scans. */
function keepingGroups(namespace: string): string[] {
  const kept = '/run/svc-demo-groups';
  const inside = `mount --rbind ${kept} /sys/fs/cgroup; exec "$@"`;
  const script = `mkdir -p ${kept} && mount --rbind /sys/fs/cgroup ${kept}; exec ip netns exec "$0" sh -c '${inside}' sh "$@"`;
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, namespace];
}

async function startSensor(steps: Steps, lab: WorldFacts | null, monitor: MonitorPart): Promise<void> {
  const { dataDir, monitorPort } = steps.settings;
  const source: Record<string, string> = lab
    ? {
        SVC_MONITOR_URL: `http://${lab.host_address}:${monitorPort}`,
        // A veth pair of this machine: the forwarder answers on no other link.
        SVC_ALLOW_INSECURE_HTTP: '1',
        SVC_SENSOR_CAPTURES: `uplink:${lab.uplink},bridge:${lab.bridge}`,
        SVC_SENSOR_NODE: lab.node,
        // This machine runs everything at once, so its CPUs are busy: scans go on nevertheless.
        SVC_SENSOR_SCAN_CPU_PERCENT: '101',
        SVC_SENSOR_SCAN_CPU_WAIT_PERCENT: '101',
      }
    : {
        SVC_MONITOR_URL: steps.monitorUrl,
        SVC_SENSOR_REPLAY: recording.capture,
        SVC_SENSOR_NODE: simulatedNode,
      };
  const sensor = steps.processes.start({
    name: 'sensor',
    args: ['sensor', 'run'],
    env: { SVC_DATA_DIR: dataDir, SVC_SENSOR_ENROLMENT_TOKEN: monitor.enrolment_token, ...source },
    ...(lab ? { prefix: keepingGroups(lab.hypervisor_namespace) } : {}),
  });
  const what = lab
    ? `captures ${lab.uplink} and ${lab.bridge}; calls the monitor by http over the lab's own veth; scans also while CPUs are busy`
    : 'replays a recorded capture, shifted to now';
  const startedMs = performance.now();
  await waitFor(steps, sensor, 'sensor', what, async () =>
    performance.now() - startedMs > 700 ? true : null,
  );
}

function showWelcome(
  steps: Steps,
  started: {
    operations: OperationsPart;
    monitor: MonitorPart;
    file: string;
    seconds: number;
    hasLab: boolean;
  },
): void {
  const { operations, monitor, file, seconds, hasLab } = started;
  const shownFile = relative(process.cwd(), file).startsWith('..') ? file : relative(process.cwd(), file);
  const key = `$(sed -n 's/.*"full_key": *"\\([^"]*\\)".*/\\1/p' '${shownFile}')`;
  const login = (title: string, { email, password }: { email: string; password: string }) =>
    `    ${title.padEnd(22)} ${email.padEnd(30)} ${password}\n`;
  say(`
Ready in ${seconds.toFixed(1)} s. Start here, one click signs you in:

  ${steps.operationsUrl}/sign-in    as a customer${hasLab ? ': attack your own server by a button' : ''}, or as an operator of all customers
  ${steps.monitorUrl}/sign-in    as an operator of the network: live traffic, attacks, a simulated site

  Customer portal        ${steps.operationsUrl}/client/
  Operators' console     ${steps.operationsUrl}/console/
  API reference          ${steps.operationsUrl}/docs/api/
  Monitor's console      ${steps.monitorUrl}/
  Caught mail            ${steps.operationsUrl}/dev/mail/ and ${steps.monitorUrl}/dev/mail/, for operators

  Demo logins
${login('customer (owner)', operations.customer)}${login('customer (member)', operations.customer_member)}${login('another customer', operations.other_customer)}${login('operator', operations.operator)}${login('support (read-only)', operations.support)}${login('monitor operator', monitor.monitor_operator)}${login('monitor viewer', monitor.monitor_viewer)}
  Deploy a server by a call:

    curl -s ${steps.operationsUrl}/api/v1/servers -H "Authorization: Bearer ${key}" \\
      -H 'Content-Type: application/json' -d '{"plan":"kvm-1","image":"debian-13","name":"hello"}'

  Everything is kept in ${steps.settings.dataDir} (logs in logs/). Ctrl-C stops it.
`);
}

/** The copy of the vulnerability database, which starts while the lab and operations do. */
async function startDatabase(steps: Steps): Promise<{ url: string; ready: () => Promise<unknown> }> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}${databasePath}`;
  const database = steps.processes.start({
    name: 'vulnerability-database',
    args: ['demo', 'vulnerability-database', '--port', String(port)],
    env: { SVC_DATA_DIR: steps.settings.dataDir },
  });
  const what = `demo copy, a selection of NVD records, at ${url}`;
  return {
    url,
    ready: () =>
      waitFor(steps, database, 'findings', what, async () => ((await isAnswering(url)) ? true : null)),
  };
}

async function findFreePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

/** A request without a product is refused, which is an answer. */
async function isAnswering(url: string): Promise<boolean> {
  return (await statusOf(url)) !== null;
}

/** Starts the loader of the simulated site behind everything else, and says how far it is. */
const lookEveryMs = 1_000;
/** Between two lines of progress. */
const stepPercent = 20;

/** Called when everything else is ready: the history has the time that is left. */
function startHistory(steps: Steps): void {
  const { processes, monitorUrl, operationsUrl, signal } = steps;
  const { dataDir } = steps.settings;
  const file = progressFileOf(dataDir);
  rmSync(file, { force: true });
  const loader = processes.start({
    name: 'simulated-site',
    args: ['demo', 'simulated-site', '--monitor', monitorUrl, '--operations', operationsUrl],
    env: { SVC_DATA_DIR: dataDir },
  });
  loader.keepAlive();
  let toldPercent = -stepPercent;
  const look = setInterval(() => {
    const progress = readProgress(file);
    if (!progress || (progress.percent < 100 && progress.percent < toldPercent + stepPercent)) return;
    toldPercent = progress.percent;
    say(`  history      simulated site, seven days: ${describeProgress(progress)}\n`);
    if (progress.percent === 100) clearInterval(look);
  }, lookEveryMs);
  look.unref();
  signal.addEventListener('abort', () => clearInterval(look), { once: true });
}

const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '..');

/** Which network the demo runs on: the lab's namespaces where this machine allows them, else a recording. */
export const recording = { capture: join(here, 'recording.pcap'), guests: join(here, 'recording.json') };
/** Local prefixes of the recording; the lab tells its own. */
export const recordingCidrs = ['203.0.113.0/24', '2001:db8:113::/64'];

/** Why there can be no lab here, or null when there can; as root it installs what the lab needs. */
async function whyNoLab(): Promise<string | null> {
  if (process.platform !== 'linux') return 'network namespaces need Linux';
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const named = (names: readonly string[]) => systemPackages.filter(({ name }) => names.includes(name));
  const needed = named(['iproute2', 'nftables', 'openssl']);
  // Without nmap the lab's ports are not scanned, and everything else works.
  await installSystemPackages([...needed, ...named(['nmap'])]);
  if (!hasSystemPackages(needed)) return 'the packages iproute2, nftables and openssl are missing';
  // The lab enters its namespaces by 'ip netns exec', which needs a mount namespace beside the network's.
  const probe = spawnSync('unshare', ['--net', '--mount', 'true']);
  return probe.status === 0 ? null : 'this machine does not allow network namespaces';
}

function readLabFacts(dataDir: string): WorldFacts | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'lab', 'world.json'), 'utf8')) as WorldFacts;
  } catch {
    return null;
  }
}
