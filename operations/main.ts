/**
 * Operations: customers, keys, servers, addresses and money. `./svc operations COMMAND`.
 *
 * Commands load their modules when they run, so that asking for help never waits for a database driver.
 */
import { Argument, type Command, InvalidArgumentError, Option } from 'commander';
import { keepAsSet } from '#contracts/retention.ts';
import { defaultDays } from '#service-kit/credentials/index.ts';
import { addBackupCommands } from '#service-kit/postgres/backup-commands.ts';
import { addRoleOption } from '#service-kit/roles/index.ts';
import { addSecretsCommands } from '#service-kit/secrets/secrets-commands.ts';
import { type OperationsRole, operationsRoles } from './roles.ts';

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,15}$/.test(text)) throw new InvalidArgumentError('It must be a whole number above 0.');
  return Number(text);
}

/** Adds the commands of this program to the command line. */
export function addCommands(program: Command): void {
  keepAsSet(process.env);
  const serving = program
    .command('serve')
    .description(
      'Run the portal, the consoles and the APIs until a signal. Settings come from the environment.',
    );
  addRoleOption(serving, operationsRoles).action(async ({ only }: { only?: ReadonlySet<OperationsRole> }) => {
    const { serve } = await import('./commands/serve.ts');
    process.exitCode = await serve(only);
  });
  program
    .command('create-operator')
    .description('Create a person for the operators’ console. The password is read from standard input.')
    .requiredOption('--email <email>', 'what they sign in with')
    .requiredOption('--name <name>', 'how they are called')
    .addOption(
      new Option('--role <role>', 'support may only read')
        .choices(['operator', 'support'])
        .default('operator'),
    )
    .action(async (options) => (await import('./commands/create-operator.ts')).createOperator(options));
  program
    .command('issue-key')
    .description('Mint an API key for a person’s organization and print its token, once.')
    .requiredOption('--email <email>', 'the person for whom the key acts; a member of the organization')
    .option('--organization <id>', 'needed when they belong to several', wholeNumber)
    .option('--name <name>', 'what the key is called', 'command line')
    .addOption(new Option('--scope <scope>', 'what it may do').choices(['read', 'full']).default('read'))
    .option('--days <days>', 'how long it works', wholeNumber, defaultDays)
    .option('--no-expiry', 'it works until it is revoked')
    .action(async (options) => (await import('./commands/issue-key.ts')).issueKeyCommand(options));
  program
    .command('revoke-key')
    .description('Revoke an API key from the next call on.')
    .argument('<key-id>', 'the middle part of its token')
    .action(async (keyId: string) => (await import('./commands/revoke-key.ts')).revokeKeyCommand(keyId));
  program
    .command('add-credit')
    .description('Record a payment of a customer.')
    .requiredOption('--tenant <id>', 'whose credit', wholeNumber)
    .requiredOption('--amount <amount>', 'such as 25.00')
    .requiredOption('--reference <text>', 'identifies the payment; a reference is recorded once only')
    .action(async (options) => (await import('./commands/add-credit.ts')).addCredit(options));
  program
    .command('fetch-image')
    .description('Bring an image from a URL to a node of libvirt, checked by its checksum.')
    .argument('<image>', 'as it is on offer, such as debian-12')
    .requiredOption('--node <name>', 'whose storage pool gets it')
    .requiredOption('--url <url>', 'of a qcow2 file')
    .requiredOption('--checksum <digits>', 'SHA-256 or SHA-512 of the file')
    .action(async (image: string, options) =>
      (await import('./commands/fetch-image.ts')).fetchImageCommand(image, options),
    );
  program
    .command('retry-provisioning')
    .description('Send a server whose provisioning failed through it again.')
    .argument('<server-id>', 'its id', wholeNumber)
    .action(async (id: number) =>
      (await import('./commands/retry-provisioning.ts')).retryProvisioningCommand(id),
    );
  program
    .command('resolve-provisioning')
    .description('End a failed provisioning: its guest runs now (repaired), or goes (remove).')
    .argument('<server-id>', 'its id', wholeNumber)
    .addArgument(new Argument('<resolution>', 'what becomes of it').choices(['repaired', 'remove']))
    .action(async (id: number, resolution: 'repaired' | 'remove') =>
      (await import('./commands/retry-provisioning.ts')).resolveProvisioningCommand(id, resolution),
    );
  addBackupCommands(program, async () => (await import('./commands/backup-target.ts')).backupTarget());
  addSecretsCommands(program, async (work) => (await import('./commands/with-secrets.ts')).withSecrets(work));
}
