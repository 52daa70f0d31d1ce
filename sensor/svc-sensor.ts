/** The command line of the packaged sensor, `svc-sensor COMMAND`: what `./svc sensor COMMAND` is in the whole project. */
import { Command } from 'commander';
import { sayFatal } from '#common/lifecycle/index.ts';
import { addCommands } from './main.ts';
import { sensorVersion } from './version.ts';

const root = new Command('svc-sensor')
  .description('Captures packets on a hypervisor, names applications, and reads capture files.')
  .version(sensorVersion)
  .showHelpAfterError('(svc-sensor --help lists what there is)');
addCommands(root);
root.parseAsync(process.argv.slice(2), { from: 'user' }).catch((error: unknown) => {
  sayFatal(error);
  process.exitCode = 1;
});
