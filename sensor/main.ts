/**
 * The sensor's commands. Each loads what it needs when it is called, so that reading a file starts at once.
 */
import type { Command } from 'commander';

/** Adds the sensor's commands to its part of the command line. */
export function addCommands(program: Command): void {
  program
    .command('read')
    .description('Read a capture file (pcap or pcapng): applications, flows, DNS answers, hosts')
    .argument('<file>', 'the capture file')
    .option('--json', 'everything, as JSON')
    .option(
      '--local <prefix>',
      'addresses that are local, which turns "in" and "out" their way; may be repeated',
      (prefix: string, before: string[]) => [...before, prefix],
      [] as string[],
    )
    .action(async (file: string, options: { json?: boolean; local: string[] }) => {
      process.exitCode = (await import('./commands/read.ts')).readFile(file, options);
    });
  program
    .command('run')
    .description('Listen on the interfaces of SVC_SENSOR_CAPTURES and report every minute to the monitor')
    .action(async () => {
      process.exitCode = await (await import('./commands/run.ts')).run(process.env);
    });
  program
    .command('top')
    .description(
      'Show what goes on right now: rates of interfaces, hosts and applications, losses, the spool',
    )
    .option('--interface <name>', 'capture on this interface instead of asking the running sensor')
    .option(
      '--local <prefix>',
      'with --interface: addresses to list (default: all); may be repeated',
      (prefix: string, before: string[]) => [...before, prefix],
      [] as string[],
    )
    .option('--count <windows>', 'end after this many windows', (text) => Number(text))
    .action(async (options: { interface?: string; local: string[]; count?: number }) => {
      process.exitCode = await (await import('./commands/top.ts')).top(options, process.env);
    });
  program
    .command('check')
    .description('Say in words what this host can do for a sensor and what it can not')
    .option('--interface <name>', 'check this interface instead of those in SVC_SENSOR_CAPTURES')
    .option('--json', 'everything, as JSON')
    .action(async (options: { interface?: string; json?: boolean }) => {
      process.exitCode = await (await import('./commands/check.ts')).check(options, process.env);
    });
  program
    .command('enrol')
    .description("Get this sensor's credential from the monitor with a one-time token")
    .requiredOption('--token <token>', 'the enrolment token, made on the site in the monitor')
    .option('--node <name>', "the hypervisor node's name in operations (default: SVC_SENSOR_NODE)")
    .action(async (options: { token: string; node?: string }) => {
      await (await import('./commands/enrol.ts')).enrolCommand(options, process.env);
    });
}
