/** The commands `rotate-secrets-key` and `rewrap-secrets-key` of a server program. */
import type { Command } from 'commander';
import { CodedError } from '#common/errors/index.ts';
import { sayFatal } from '#common/lifecycle/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { KeyWrapper, Secrets } from './index.ts';

export interface SecretsTarget {
  secrets: Secrets;
  /** The settings of the key: its names with `_FILE` and `_COMMAND`. */
  settingPrefix: string;
  createWrapper(key: { file: string | null; command: string | null }): KeyWrapper;
  actorOf(command: string): AuditActor;
}

/** Adds both; `withTarget` opens the program's database, beside running processes too, for one piece of work. */
export function addSecretsCommands(
  program: Command,
  withTarget: (work: (target: SecretsTarget) => Promise<void>) => Promise<void>,
): void {
  const run = async (work: (target: SecretsTarget) => Promise<string>) => {
    try {
      await withTarget(async (target) => void process.stdout.write(`${await work(target)}\n`));
    } catch (error) {
      sayFatal(error);
      process.exitCode = 1;
    }
  };
  program
    .command('rotate-secrets-key')
    .description(
      'Create a new data key and seal every secret in the database with it, also while the program runs.',
    )
    .action(() =>
      run(async ({ secrets, actorOf }) => {
        const { keyId, sealed, deletedKeys } = await secrets.rotate(actorOf('rotate-secrets-key'));
        return `data key ${keyId}: ${sealed} secrets sealed anew, ${deletedKeys} former keys deleted`;
      }),
    );
  program
    .command('rewrap-secrets-key')
    .description(
      'Wrap the data keys with another key file or command; the present settings name the former one.',
    )
    .option('--file <file>', 'the other key file; it is made where there is none')
    .option('--command <command>', 'the other key command')
    .action((options: { file?: string; command?: string }) =>
      run(async ({ secrets, settingPrefix, createWrapper, actorOf }) => {
        const { file = null, command = null } = options;
        if ((file === null) === (command === null))
          throw new CodedError('command.invalid', 'Give one of --file and --command.');
        const to = createWrapper({ file, command });
        const count = await secrets.rewrap(actorOf('rewrap-secrets-key'), to);
        const setting =
          file === null ? `${settingPrefix}_COMMAND=${command}` : `${settingPrefix}_FILE=${file}`;
        return `${count} data keys are wrapped by ${to.place} now.\nSet ${setting} for every process before it starts again. Keep the former key as long as backups from before are kept.`;
      }),
    );
}
