/** The command line of the packaged sensor: `svc-sensor COMMAND` is `./svc sensor COMMAND` of the whole project. */
import { sayFatal } from '#common/lifecycle/index.ts';
import { readAtOnce } from './commands/read-arguments.ts';

async function main([command, ...args]: string[]): Promise<void> {
  if (command === 'read' && (await readAtOnce(args))) return;
  const { Command } = await import('commander');
  const { addCommands } = await import('./main.ts');
  const { versionText } = await import('./version.ts');
  const root = new Command('svc-sensor')
    .description('Captures packets on a hypervisor, names applications, and reads capture files.')
    .version(versionText)
    .showHelpAfterError('(svc-sensor --help lists the commands)');
  addCommands(root);
  await root.parseAsync(process.argv.slice(2), { from: 'user' });
}

main(process.argv.slice(2)).catch((error: unknown) => {
  sayFatal(error);
  process.exitCode = 1;
});
