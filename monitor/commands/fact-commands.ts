/** Adds the commands that move facts. */
import type { Command } from 'commander';
import { CodedError } from '#common/errors/index.ts';

type Run = (command: (environment: NodeJS.ProcessEnv) => Promise<number>) => Promise<void>;

const moveHelp = `
It runs beside the other services, as often as wanted: after Ctrl-C, a crash or a failure the same command goes on where it stopped.
1. Days that have ended are copied, site by site, and the sums of both engines are compared (rows, bytes, packets of each table).
2. All copied days are compared again. A difference is named and ends the command; nothing is switched.
3. Uploads that arrive wait in the inbox while the last days are copied. Sensors are answered as before, and lose nothing.
4. The other engine is noted as the one in use. Services that are set to the old one apply nothing more and say so:
   change SVC_FACTS_URL and restart them.
The source keeps its facts until you delete them (delete-facts).`;

export function addFactCommands(program: Command, run: Run): void {
  program
    .command('move-facts')
    .description('move the traffic facts to ClickHouse, or back to PostgreSQL, while everything runs')
    .option('--to <url>', 'clickhouse://user:password@host:8123/database, https://…, or the word postgres')
    .option('--cancel', 'give up a move that is under way')
    .addHelpText('after', moveHelp)
    .action(async ({ to, cancel }: { to?: string; cancel?: boolean }) => {
      const commands = await import('./move-facts.ts');
      await run(async (environment) => {
        if ((to === undefined) === (cancel === undefined))
          throw new CodedError('command.invalid', 'move-facts takes either --to or --cancel.');
        return cancel ? commands.cancelFactMove(environment) : commands.moveFacts(environment, to!);
      });
    });
  program
    .command('delete-facts')
    .description('delete the traffic facts of an engine that is not in use any more')
    .requiredOption('--from <url>', 'the word postgres, or the URL of ClickHouse')
    .action(async ({ from }: { from: string }) => {
      const { deleteOtherFacts } = await import('./move-facts.ts');
      await run((environment) => deleteOtherFacts(environment, from));
    });
}
