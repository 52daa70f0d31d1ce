/** The lab's commands: `./svc lab up | down | status | attack | record`. */
import type { Command } from 'commander';
import { runUntilSignal, sayFatal } from '#common/lifecycle/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import {
  type AttackWords,
  attackClasses,
  describeProgress,
  describeResult,
  perSecondMax,
  readOrder,
  runAttack,
  secondsMax,
} from './attack/index.ts';
import { readLabConfig } from './config.ts';
import { createLab, inspectLab, removeLab } from './index.ts';
import { recordTraffic } from './record/index.ts';

/** Adds the commands to the program's command line. */
export function addCommands(program: Command): void {
  program
    .command('up')
    .description('make the world of the data directory and keep it until Ctrl-C (root on Linux)')
    .option(
      '--old-services',
      'guests also serve what looks like old releases of well-known programs, for scans of ports to find',
    )
    .action((options: UpOptions) => finish(() => up(options)));
  program
    .command('down')
    .description("end the data directory's world and remove everything of it, also after a crash")
    .action(() => finish(down));
  program
    .command('status')
    .description("show the data directory's world and its guests")
    .option('--json', 'as JSON')
    .action((options: { json?: boolean }) => finish(() => status(options.json === true)));
  addAttack(program);
  program
    .command('record')
    .description(
      'record whole minutes of four guests into a small capture file, which sensors without root replay',
    )
    .option('--minutes <count>', 'how many', '3')
    .option(
      '--out <file>',
      'the capture file; guests and counted minutes are written beside it',
      'demo/recording.pcap',
    )
    .action((options: { minutes: string; out: string }) => finish(() => record(options)));
}

function addAttack(program: Command): void {
  program
    .command('attack')
    .description(
      "flood one guest of the running world with real packets from the lab's internet, to try what detects attacks; " +
        'addresses outside the lab are refused',
    )
    .requiredOption('--target <address>', 'a public IPv4 or IPv6 address of a guest that is on')
    .requiredOption('--class <class>', `what the packets are: ${attackClasses.join(', ')}`)
    .option(
      '--pps <count>',
      `packets (connection_flood: connections) a second, at most ${perSecondMax}`,
      '25000',
    )
    .option('--seconds <count>', `for how long, at most ${secondsMax}; Ctrl-C ends it at once`, '60')
    .option(
      '--from <source>',
      '"outside": many sources; or one of the addresses that the lab attacks from',
      'outside',
    )
    .action((words: AttackWords) => finish(() => attack(words)));
}

async function finish(command: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await command();
  } catch (error) {
    sayFatal(error);
    process.exitCode = 1;
  }
}

interface UpOptions {
  oldServices?: boolean;
}

function up({ oldServices = false }: UpOptions): Promise<number> {
  const config = readLabConfig(process.env);
  const reporter = createReporter({ program: 'lab' });
  const lab = createLab({
    dataDir: config.dataDir,
    reporter,
    forwards: [config.monitorPort],
    hasOldServices: oldServices,
    stopRequested: () => process.kill(process.pid, 'SIGTERM'),
  });
  return runUntilSignal([lab], reporter);
}

async function down(): Promise<number> {
  await removeLab(readLabConfig(process.env).dataDir);
  return 0;
}

async function status(isJson: boolean): Promise<number> {
  const world = await inspectLab(readLabConfig(process.env).dataDir);
  if (isJson) process.stdout.write(`${JSON.stringify(world, null, 2)}\n`);
  else if (!world) process.stdout.write('The lab is not running. Start it with: ./svc lab up\n');
  else process.stdout.write(describeStanding(world));
  return world ? 0 : 3;
}

function describeStanding(world: NonNullable<Awaited<ReturnType<typeof inspectLab>>>): string {
  const { facts } = world;
  const guests = world.guests as {
    name: string;
    power: string;
    mac: string;
    addresses: { address: string }[];
    exchanges: { held: number; failed: number } | null;
  }[];
  const lines = guests.map((guest) => {
    const addresses = guest.addresses.map((entry) => entry.address).join(' ');
    const talk = guest.exchanges ? `${guest.exchanges.held} held, ${guest.exchanges.failed} failed` : '';
    return `  ${guest.name.padEnd(20)} ${guest.power.padEnd(4)} ${guest.mac}  ${addresses}  ${talk}`;
  });
  return [
    `world ${facts.world}, hypervisor ${facts.hypervisor_namespace} (${facts.uplink}, ${facts.bridge})`,
    `control socket ${facts.control_socket}`,
    `truth ledger ${facts.truth_ledger}`,
    `${guests.length} guests`,
    ...lines,
    '',
  ].join('\n');
}

async function attack(words: AttackWords): Promise<number> {
  const order = readOrder(words);
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => (stopping.signal.aborted ? process.exit(130) : stopping.abort()));
  }
  const { isTTY } = process.stderr;
  const result = await runAttack({
    dataDir: readLabConfig(process.env).dataDir,
    order,
    signal: stopping.signal,
    told: (progress) => {
      if (isTTY) process.stderr.write(`\r\x1b[K${describeProgress(order, progress)}`);
    },
  }).finally(() => isTTY && process.stderr.write('\r\x1b[K'));
  process.stdout.write(`${describeResult(order, result)}\n`);
  if (result.end === 'stopped') return 130;
  if (result.end === 'over') return 0;
  process.stderr.write('svc: the attack ended early, because the lab or the guest went away\n');
  return 1;
}

async function record(options: { minutes: string; out: string }): Promise<number> {
  const minutes = Number(options.minutes);
  if (!Number.isInteger(minutes) || minutes < 1 || minutes > 10) {
    process.stderr.write('svc: --minutes must be a whole number from 1 to 10\n');
    return 1;
  }
  await recordTraffic({ minutes, file: options.out, reporter: createReporter({ program: 'lab' }) });
  return 0;
}
