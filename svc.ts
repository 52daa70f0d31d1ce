/**
 * The one command line: `./svc PROGRAM COMMAND …`. Each program owns its commands; this file only finds them.
 *
 * A program's modules are loaded when it is asked for, so that reading a capture never waits for a web server's.
 */
import type { Command } from 'commander';
import { sayFatal } from '#common/lifecycle/index.ts';

interface Program {
  sentence: string;
  load: () => Promise<{ addCommands(program: Command): void }>;
  /** Does what must start at once, without a command line's machinery; false when it is for `load`. */
  runAtOnce?: (args: string[]) => Promise<boolean>;
}

const programs: Record<string, Program> = {
  demo: {
    sentence: 'Everything on this machine with a demo world to try it on; what npm start calls.',
    load: () => import('#demo/main.ts'),
  },
  operations: {
    sentence: 'Customers, servers, addresses and money: customer API, portal, console, admin API.',
    load: () => import('#operations/main.ts'),
  },
  monitor: {
    sentence: 'Takes in what sensors observe, shows it, and feeds it to operations.',
    load: () => import('#monitor/main.ts'),
  },
  sensor: {
    sentence: 'Captures packets on a hypervisor, names applications, and reads capture files.',
    load: () => import('#sensor/main.ts'),
    runAtOnce: async ([command, ...args]) =>
      command === 'read' && (await import('#sensor/commands/read-arguments.ts')).readAtOnce(args),
  },
  lab: {
    sentence: 'A network of namespaces with real guests, for trying and testing (root on Linux).',
    load: () => import('#lab/main.ts'),
  },
};

async function main(argv: string[]): Promise<void> {
  if (await programs[argv[0]!]?.runAtOnce?.(argv.slice(1))) return;
  const { Command } = await import('commander');
  const { versionText } = await import('#sensor/version.ts');
  const root = new Command('svc')
    .description(
      'Operations, network monitoring and packet sensors for companies that rent out virtual servers.',
    )
    .version(versionText)
    .showHelpAfterError('(./svc --help lists what there is)');
  for (const [name, program] of Object.entries(programs)) {
    const command = root.command(name).description(program.sentence);
    if (argv[0] === name || (argv[0] === 'help' && argv[1] === name))
      (await program.load()).addCommands(command);
  }
  await root.parseAsync(argv, { from: 'user' });
}

main(process.argv.slice(2)).catch((error: unknown) => {
  sayFatal(error);
  process.exitCode = 1;
});
