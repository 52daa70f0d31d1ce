/** The monitor's commands. Each reads the settings, starts the parts it needs, and stops them again. */
import type { Command } from 'commander';
import { CodedError } from '#common/errors/index.ts';
import { sayFatal } from '#common/lifecycle/index.ts';
import { keepAsSet } from '#contracts/retention.ts';
import { addBackupCommands } from '#service-kit/postgres/backup-commands.ts';
import { addRoleOption } from '#service-kit/roles/index.ts';
import { addSecretsCommands } from '#service-kit/secrets/secrets-commands.ts';
import type { AssessOptions } from './commands/assess.ts';
import { addFactCommands } from './commands/fact-commands.ts';
import { type MonitorRole, monitorRoles } from './roles.ts';

/** Adds `./svc monitor …`. Modules are loaded by the command that needs them. */
export function addCommands(program: Command): void {
  keepAsSet(process.env);
  const serving = program
    .command('serve')
    .description('receive uploads of sensors, serve the console, deliver to operations; until Ctrl-C');
  addRoleOption(serving, monitorRoles).action(async ({ only }: { only?: ReadonlySet<MonitorRole> }) => {
    const { serve } = await import('./commands/serve.ts');
    await run((environment) => serve(environment, only));
  });
  program
    .command('apply-uploads')
    .description('apply the waiting uploads, then exit; "serve --only inbox" goes on')
    .action(async () => {
      const { applyUploads } = await import('./commands/apply-uploads.ts');
      await run(applyUploads);
    });
  program
    .command('sync_ops_ddos')
    .description('deliver incidents and observed minutes to operations: one tick of each, with its result')
    .option('--loop', 'repeat every SVC_OPS_DDOS_SYNC_SECONDS until Ctrl-C')
    .action(async (options: { loop?: boolean }) => {
      const { syncTraffic } = await import('./commands/sync-traffic.ts');
      await run((environment) => syncTraffic(environment, options.loop ?? false));
    });
  program
    .command('sync_ops_protect_live')
    .description('deliver live traffic to operations: one tick, with its result')
    .option('--loop', 'repeat every SVC_OPS_PROTECT_LIVE_SYNC_SECONDS until Ctrl-C')
    .action(async (options: { loop?: boolean }) => {
      const { syncLive } = await import('./commands/sync-live.ts');
      await run((environment) => syncLive(environment, options.loop ?? false));
    });
  program
    .command('maintain_metrics')
    .description('delete expired data once, and print the counts')
    .action(async () => {
      const { maintainMetrics } = await import('./commands/maintain-metrics.ts');
      await run(maintainMetrics);
    });
  program
    .command('resolve_mac_vendors')
    .description(
      'look up the manufacturers of devices: in the bundled table, then in the registry of SVC_MAC_VENDOR_LOOKUP_URL',
    )
    .option('--limit <count>', 'maximum number of registry lookups', '200')
    .option('--offline', 'use the bundled table only')
    .action(async (options: { limit: string; offline?: boolean }) => {
      const { resolveMacVendors } = await import('./commands/resolve-mac-vendors.ts');
      await run(async (environment) => {
        if (!/^[1-9][0-9]{0,5}$/.test(options.limit)) {
          throw new CodedError('command.invalid', '--limit takes a whole number from 1 to 999999.');
        }
        const limit = Number(options.limit);
        return resolveMacVendors(environment, { limit, isOffline: options.offline ?? false });
      });
    });
  addVulnerabilityCommands(program);
  addFactCommands(program, run);
  program
    .command('add-operator')
    .description('add a person to the console, or set a new password; it is read from standard input')
    .argument('<email>')
    .option('--name <name>', 'display name', '')
    .option('--read-only', 'read-only access')
    .action(async (email: string, options: { name: string; readOnly?: boolean }) => {
      const { addOperator } = await import('./commands/add-operator.ts');
      const role = options.readOnly ? 'viewer' : 'operator';
      await run((environment) => addOperator(environment, { email, name: options.name, role }));
    });
  addBackupCommands(program, async () => (await import('./commands/backup-target.ts')).backupTarget());
  addSecretsCommands(program, async (work) => (await import('./commands/with-secrets.ts')).withSecrets(work));
}

function addVulnerabilityCommands(program: Command): void {
  program
    .command('refresh_vulnerabilities')
    .description('fetch records of the vulnerability database for the products that are due, once')
    .option('--loop', 'repeat until Ctrl-C, beside serve with SVC_VULNERABILITY_SYNC=0')
    .option(
      '--from <folder>',
      "read feed files and files of distributions' trackers in a folder, or one at a URL, instead",
    )
    .action(async (options: { loop?: boolean; from?: string }) => {
      const { refreshVulnerabilities } = await import('./commands/refresh-vulnerabilities.ts');
      const chosen = { isLoop: options.loop ?? false, folder: options.from ?? null };
      await run((environment) => refreshVulnerabilities(environment, chosen));
    });
  program
    .command('assess')
    .description('what the stored vulnerability records say of services; sends nothing')
    .option('--cpe <name>', 'a service by its CPE name, 2.3 or 2.2')
    .option('--nmap <file>', 'the open ports in a file that nmap wrote with -sV -oX')
    .option('--address <address>', 'the open ports that scans found at an address')
    .option('--product <name>', 'a service as a scan names it, such as OpenSSH')
    .option('--product-version <text>', 'with --product: the version as the service shows it')
    .option('--info <text>', 'with --product: what else it shows, such as "Ubuntu Linux; protocol 2.0"')
    .option('--json', 'print JSON')
    .action(async (options: AssessOptions) => {
      const { assess } = await import('./commands/assess.ts');
      await run((environment) => assess(environment, options));
    });
}

async function run(command: (environment: NodeJS.ProcessEnv) => Promise<number>): Promise<void> {
  try {
    process.exitCode = await command(process.env);
  } catch (error) {
    sayFatal(error);
    process.exitCode = 1;
  }
}
