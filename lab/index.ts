/**
 * The lab: a world of network namespaces with real guests, a real bridge and uplink, and a real internet.
 *
 * One world per data directory. Its supervisor is the process that calls `start`; when that process ends, for
 * any reason, the world's processes end with it, and the next `start` or `removeLab` removes the rest. Nothing leaves
 * the namespaces, and nothing of the host is reached from them but the sensor API of monitors.
 */
import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { callControl, createControlServer } from './control/index.ts';
import { writeFileDurably } from './guests/guest-file.ts';
import { createGuests } from './guests/index.ts';
import { certificateNames, resolver } from './traffic/internet-plan.ts';
import type { CertificateFiles } from './traffic/web-service.ts';
import { buildWorld } from './world/build-world.ts';
import { type Forwarder, forwardSensorApi } from './world/forward-sensor-api.ts';
import { nameWorld, type WorldNames } from './world/name-world.ts';
import { lanNetworks, links, wan } from './world/networks.ts';
import { removeWorld } from './world/remove-world.ts';
import { runTool } from './world/run-tool.ts';
import { createWorldProcesses } from './world-processes.ts';

export type { GuestAddress, Power } from '#lab/guests/guest.ts';

export type { GuestInput } from './guests/guest-definition.ts';
export type { Guest } from './guests/index.ts';
export type { TruthRow } from './truth/minute-ledger.ts';
export type { PrivateNic } from './world/private-networks.ts';

export interface LabOptions {
  dataDir: string;
  reporter: Reporter;
  /** Ports of monitors on the host's loopback, whose sensor API the hypervisor may call. */
  forwards?: readonly number[];
  /** Mean rate of each guest's own exchanges and of the calls it gets from the internet. Some 35 packets each; 0 is silence. */
  outboundPerSecond?: number;
  inboundPerSecond?: number;
  /** Guests also serve what scans of ports can identify: old releases, packages, other programs. */
  hasOldServices?: boolean;
  /** Called when the control socket receives a stop; without it the call is refused. */
  stopRequested?: () => void;
  clock?: Clock;
}

/** What others need to know of a standing world; `control.md` shows it as JSON. */
export interface WorldFacts {
  world: string;
  pid: number;
  control_socket: string;
  hypervisor_namespace: string;
  internet_namespace: string;
  node: string;
  uplink: string;
  bridge: string;
  networks: { prefix: string; gateway: string; first_guest: string; last_guest: string }[];
  host_address: string;
  hypervisor_address: string;
  /** What answers out in the lab's internet: the provider's gateway and a resolver. */
  gateway_address: string;
  resolver_address: string;
  forwards: number[];
  truth_ledger: string;
}

export type Lab = ReturnType<typeof createLab>;

/** Makes a lab; the world stands after `start`. Throws when the data directory can't be made. */
export function createLab(options: LabOptions) {
  const names = nameWorld(options.dataDir);
  const facts = describeWorld(names, options.forwards ?? []);
  const reporter = options.reporter.with({ world: names.world });
  let certificate: CertificateFiles | null = null;
  let forwarder: Forwarder | null = null;
  const processes = createWorldProcesses(names, reporter);
  const guests = createGuests({
    names,
    reporter,
    outboundPerSecond: options.outboundPerSecond ?? 0.7,
    hasOldServices: options.hasOldServices ?? false,
    certificate: () => certificate!,
    changed: processes.setGuests,
  });
  const control = createControlServer({
    socket: names.controlSocket,
    facts,
    guests,
    reporter,
    stopRequested: options.stopRequested ?? null,
  });

  const stop = async () => {
    await control.stop();
    await guests.stop();
    await Promise.all([processes.stop(), forwarder?.stop()]);
    await removeWorld(names);
    reporter.info('lab is down');
  };
  const raise = async () => {
    await removeWorld(names);
    certificate = await makeCertificate(names.directory);
    await buildWorld(names, facts.forwards);
    forwarder = await forwardSensorApi(names, facts.forwards);
    await processes.start({ inboundPerSecond: options.inboundPerSecond ?? 0.4, ...certificate });
    await guests.start();
    await control.start();
    writeFileDurably(names.worldFile, `${JSON.stringify(facts, null, 2)}\n`);
  };
  const inNamespace = (namespace: string, argv: readonly string[]) => [
    ...['ip', 'netns', 'exec', namespace],
    ...argv,
  ];
  const inHypervisor = (argv: readonly string[]) => inNamespace(names.hypervisorNamespace, argv);
  const inGuest = (name: string, argv: readonly string[]) => inNamespace(guests.get(name).namespace, argv);

  return {
    ...guests,
    name: 'lab',
    facts,
    async start() {
      refuseWithoutRoot();
      await refuseSecondSupervisor(names);
      try {
        await raise();
      } catch (error) {
        await stop().catch(() => {});
        throw error;
      }
      reporter.info('lab is up', { hypervisor: names.hypervisorNamespace, guests: guests.list().length });
    },
    stop,
    /** The argument list that runs `argv` inside the hypervisor (or a guest). */
    inHypervisor,
    inGuest,
    /** Runs `argv` inside the hypervisor to its end; resolves with its standard output, throws `lab.tool_failed`. */
    execInHypervisor: (argv: readonly string[]) => runTool(inHypervisor(argv)),
    execInGuest: (name: string, argv: readonly string[]) => runTool(inGuest(name, argv)),
  };
}

/** Ends the world of a data directory: asks its supervisor, and clears what is left when there is none. */
export async function removeLab(dataDir: string, clock: Clock = systemClock): Promise<void> {
  refuseWithoutRoot();
  const names = nameWorld(dataDir);
  const isAsked = await callControl(names.controlSocket, 'POST', '/world/stop').then(
    (answer) => answer.status === 202,
    () => false,
  );
  const deadlineMs = clock.monotonicMs() + 20_000;
  while (isAsked && clock.monotonicMs() < deadlineMs) {
    if (!(await isAnswering(names))) break;
    await clock.wait(100);
  }
  await removeWorld(names);
  rmSync(names.controlSocket, { force: true });
}

/** The facts and guests of the data directory's standing world, or null when none stands. */
export async function inspectLab(dataDir: string): Promise<{ facts: WorldFacts; guests: unknown[] } | null> {
  const names = nameWorld(dataDir);
  try {
    const facts = (await callControl(names.controlSocket, 'GET', '/world')).body as WorldFacts;
    const { guests } = (await callControl(names.controlSocket, 'GET', '/guests')).body as {
      guests: unknown[];
    };
    return { facts, guests };
  } catch {
    return null;
  }
}

function describeWorld(names: WorldNames, forwards: readonly number[]): WorldFacts {
  return {
    world: names.world,
    pid: process.pid,
    control_socket: names.controlSocket,
    hypervisor_namespace: names.hypervisorNamespace,
    internet_namespace: names.internetNamespace,
    node: names.node,
    uplink: links.uplink,
    bridge: links.bridge,
    networks: lanNetworks.map((network) => ({
      prefix: network.prefix,
      gateway: network.gateway,
      first_guest: network.firstGuest,
      last_guest: network.lastGuest,
    })),
    host_address: names.hostAddress,
    hypervisor_address: names.hypervisorAddress,
    gateway_address: wan.internetGateways[0],
    resolver_address: resolver.ipv4,
    forwards: [...forwards],
    truth_ledger: names.truthLedger,
  };
}

/** Throws `lab.root_needed`. */
export function refuseWithoutRoot(): void {
  if (process.getuid?.() !== 0) {
    throw new CodedError('lab.root_needed', 'The lab makes network namespaces, which takes root on Linux');
  }
}

async function refuseSecondSupervisor(names: WorldNames): Promise<void> {
  if (!(await isAnswering(names))) return;
  const message = 'The lab of this data directory is up already. End it with: ./svc lab down';
  throw new CodedError('lab.already_up', message);
}

async function isAnswering(names: WorldNames): Promise<boolean> {
  return callControl(names.controlSocket, 'GET', '/world').then(
    () => true,
    () => false,
  );
}

/** Makes the certificate of all TLS servers of a world, and its key, in `directory`; the key has mode 0600. Valid for ten years, so no world outlives it. */
async function makeCertificate(directory: string): Promise<CertificateFiles> {
  const files = { certificate: join(directory, 'certificate.pem'), key: join(directory, 'key.pem') };
  const names = certificateNames.map((name) => `DNS:${name}`).join(',');
  const request = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const content = ['-days', '3650', '-subj', '/CN=svc lab', '-addext', `subjectAltName=${names}`];
  await runTool(['openssl', ...request, ...content, '-keyout', files.key, '-out', files.certificate]);
  chmodSync(files.key, 0o600);
  return files;
}
