/** The commands `backup` and `restore` of a server program. */
import type { Command } from 'commander';
import { sayFatal } from '#common/lifecycle/index.ts';
import type { BackupTarget } from './backup.ts';

/** Adds both; `readTarget` reads the program's settings when one of them runs. */
export function addBackupCommands(program: Command, readTarget: () => Promise<BackupTarget>): void {
  const run = async (work: (target: BackupTarget) => Promise<string>) => {
    try {
      process.stdout.write(`${await work(await readTarget())}\n`);
    } catch (error) {
      sayFatal(error);
      process.exitCode = 1;
    }
  };
  program
    .command('backup')
    .description('Copy the embedded database into one file, also while the program runs.')
    .argument('<file>', 'a new file; it holds secrets, so keep it as carefully as the database')
    .option('--allow-empty', 'also a database in which nothing was done yet')
    .action((file: string, { allowEmpty = false }: { allowEmpty?: boolean }) =>
      run(async (target) => {
        const { backUp } = await import('./backup.ts');
        const { bytes, manifest } = await backUp(target, file, { mayBeEmpty: allowEmpty });
        return `${file}: ${(bytes / 1e6).toFixed(1)} MB, everything committed before ${manifest.finishedAt}`;
      }),
    );
  program
    .command('restore')
    .description('Put a backup into an empty data directory; the next start goes on from it.')
    .argument('<file>', 'what backup wrote')
    .action((file: string) =>
      run(async (target) => {
        const { restore } = await import('./backup.ts');
        const { finishedAt } = await restore(target, file);
        return `restored: the state of ${finishedAt}. Start the program to go on from there.`;
      }),
    );
}
