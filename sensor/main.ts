/**
 * The sensor's commands. Each loads its modules when it is called, so that reading a file starts fast.
 */
import { type Command, Option } from 'commander';
import type { DetectOptions, ReadOptions } from './capture-reader/index.ts';
import { readArguments } from './commands/read-arguments.ts';

const readExamples = `
Examples:
  read traffic.pcap.gz                          a summary and the largest rows of every table
  read eth0.pcap* --minutes --top 30            a capture in parts, with its minutes
  read day.pcap --host 192.0.2.7 --port 443     one host's TLS traffic
  read day.pcap --name '*.example.com' --from 12:00 --to 12:15
  tcpdump -i eth0 -c 100000 -w - | … read -     without a file`;

const detectExamples = `
Without --protect, every address that receives is protected. A threshold file is JSON; missing values are the defaults, and
null is "not judged":
  {"inbound": {"pps": 20000, "udp_bps": null}, "outbound": {"syn_pps": 1000}}
Thresholds of one address, inbound / outbound: pps 50000 / 80000, bps 900000000 / 900000000, syn_pps 10000 / 3000; inbound only:
udp_pps 30000, udp_bps 400000000, icmp_pps 5000, fragment_pps 5000, amplification_bps 150000000, amplification_spread_bps
100000000 (more than 20 sources), connections_per_second 10000.

Examples:
  detect traffic.pcap                           attacks on every address, and what they consist of
  detect uplink.pcap.zst --protect 192.0.2.0/24 --protect 2001:db8::/48
  detect traffic.pcap --thresholds limits.json --json`;

const runSettings = `
Settings are environment variables. The most important ones:
  SVC_MONITOR_URL             the monitor's URL (http://127.0.0.1:8090)
  SVC_SENSOR_CAPTURES         interfaces with their roles: uplink:eth0,bridge:br0
  SVC_SENSOR_ENROLMENT_TOKEN  one-time token for the first start; or call enrol
  SVC_SENSOR_STATE_DIR        directory of the credential and the spool
  SVC_SENSOR_SPOOL_MIB        size limit of the spool (160)
All settings: docs/settings.md, or man svc-sensor. To check this host: check.`;

const scanHelp = `
Progress goes to standard error. Ctrl-C ends the scan and keeps what was found. Exit code: 0 complete, 1 not scanned,
2 wrong arguments, 3 partial. What is sent, and how to read the result: docs/port-scans.md.`;

/** Where root started a command, it goes on without root's rights (`commands/drop-root.ts`). */
async function dropRoot(name: string, files: readonly (string | undefined)[] = [], isAlone = false) {
  await (await import('./commands/drop-root.ts')).dropRoot(name, files, isAlone);
}

/** Adds the commands that read capture files. */
function addFileCommands(program: Command): void {
  const read = program
    .command('read')
    .description(
      'Read capture files (pcap or pcapng, also gzip or zstd): applications, flows, DNS answers, hosts',
    )
    .argument('<file...>', 'capture files, read as one capture; - for standard input');
  for (const { flags, text, isList, default: value } of readArguments) {
    if (isList) read.option(flags, text, (one: string, before: string[]) => [...before, one], []);
    else read.option(flags, text, value);
  }
  read
    .addHelpText('after', readExamples)
    // As for other invalid options.
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(async (files: string[], options: ReadOptions) => {
      await dropRoot('read', files);
      process.exitCode = await (await import('./commands/read.ts')).read(files, options);
    });
  program
    .command('detect')
    .description("Find attacks in a capture file by the detector's rules, with the file's own clock")
    .argument('<file>', 'capture file (pcap or pcapng, also gzip or zstd); - for standard input')
    .option('--json', 'print everything as JSON')
    .option(
      '--protect <prefix>',
      'protected prefix or address; may be repeated',
      (prefix: string, before: string[] = []) => [...before, prefix],
    )
    .option('--thresholds <file>', 'JSON file with other thresholds')
    .option('--link-speed <bits>', 'speed of the recorded link, such as 10G; unknown is not judged')
    .option('--explain', 'say why each incident is one, and why the largest other traffic is none')
    .addHelpText('after', detectExamples)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(async (file: string, options: DetectOptions) => {
      await dropRoot('detect', [file, options.thresholds]);
      process.exitCode = await (await import('./commands/read.ts')).detect(file, options);
    });
}

/** Adds the sensor's commands to its part of the command line. */
export function addCommands(program: Command): void {
  addFileCommands(program);
  program
    .command('run')
    .description('Listen on the interfaces of SVC_SENSOR_CAPTURES and report every minute to the monitor')
    .addHelpText('after', runSettings)
    .action(async () => {
      await dropRoot('run');
      process.exitCode = await (await import('./commands/run.ts')).run(process.env);
    });
  program
    .command('top')
    .description('Show live rates of interfaces, hosts and applications, losses, and the spool')
    .option('--interface <name>', 'capture on this interface instead of using the running sensor')
    .option(
      '--local <prefix>',
      'with --interface: addresses to list (default: all); may be repeated',
      (prefix: string, before: string[]) => [...before, prefix],
      [] as string[],
    )
    .option('--count <windows>', 'end after this many windows', (text) => Number(text))
    .action(async (options: { interface?: string; local: string[]; count?: number }) => {
      await dropRoot('top', [], options.interface !== undefined);
      process.exitCode = await (await import('./commands/top.ts')).top(options, process.env);
    });
  program
    .command('count')
    .description(
      'Count an interface for some seconds, in the kernel where it can: totals by address and direction',
    )
    .requiredOption('--interface <name>', 'the interface')
    .option(
      '--local <prefix>',
      'addresses to list (default: all); may be repeated',
      (prefix: string, before: string[]) => [...before, prefix],
      [] as string[],
    )
    .option('--seconds <seconds>', 'how long', (text) => Number(text), 10)
    .option('--json', 'print everything as JSON')
    .action(async (options: { interface: string; local: string[]; seconds: number; json?: boolean }) => {
      await dropRoot('count', [], true);
      process.exitCode = await (await import('./commands/count.ts')).count(options);
    });
  program
    .command('scan')
    .description('Scan one address for open ports, within the same limits as scheduled scans')
    .argument('<address>', 'IPv4 or IPv6 address of a server that this host reaches')
    .addOption(
      new Option('--profile <profile>', 'the 100 most used ports of TCP and UDP, or all 65,535 of both')
        .choices(['common', 'full'])
        .default('common'),
    )
    .option('--json', 'print the result as JSON')
    .addHelpText('after', scanHelp)
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action(async (address: string, options: { profile: 'common' | 'full'; json?: boolean }) => {
      await dropRoot('scan');
      process.exitCode = await (await import('./commands/scan.ts')).scan(address, options);
    });
  program
    .command('attach')
    .description(
      'Let the kernel count the interfaces of SVC_SENSOR_CAPTURES, and filter with SVC_SENSOR_FILTER; as root, before the sensor starts',
    )
    .action(async () => {
      await dropRoot('attach');
      process.exitCode = await (await import('./commands/attach.ts')).attach(process.env);
    });
  program
    .command('check')
    .description('Check whether this host meets the requirements of a sensor')
    .option('--interface <name>', 'check this interface instead of those in SVC_SENSOR_CAPTURES')
    .option('--json', 'print everything as JSON')
    .option(
      '--remove',
      'take the counting program and the filter off the interfaces of SVC_SENSOR_CAPTURES, without any off all',
    )
    .action(async (options: { interface?: string; json?: boolean; remove?: boolean }) => {
      if (options.remove) {
        process.exitCode = await (await import('./commands/attach.ts')).removeCounters(process.env);
        return;
      }
      await dropRoot('check');
      process.exitCode = await (await import('./commands/check.ts')).check(options, process.env);
    });
  program
    .command('enrol')
    .description(
      "Get this sensor's credential from the monitor with a one-time token, which is read from standard input",
    )
    .option('--token-file <file>', 'read the token from this file instead')
    .option('--token <token>', 'the token itself; other users of the host can see it while the command runs')
    .option('--node <name>', "the hypervisor node's name in operations (default: SVC_SENSOR_NODE)")
    .action(async (options: { token?: string; tokenFile?: string; node?: string }) => {
      await dropRoot('enrol', [options.tokenFile]);
      await (await import('./commands/enrol.ts')).enrolCommand(options, process.env);
    });
  program
    .command('compile', { hidden: true })
    .description('Compile the modules in advance, so that the next start is fast')
    .action(async () => {
      await (await import('./commands/compile.ts')).compile();
    });
}
