/**
 * `./svc demo`, which `npm start` calls: everything on this machine, with a demo world to try it on.
 *
 * It starts the programs as a provider would, each as a process of its own that is brought back when it dies, and
 * knows them by their commands, settings and pages alone.
 */
import type { Command } from 'commander';
import { CodedError } from '#common/errors/index.ts';
import { runUntilSignal, sayFatal } from '#common/lifecycle/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { readDemoSettings } from './config.ts';
import { createSimulatedSite } from './simulated-site/index.ts';
import { startDemo } from './start-demo.ts';
import { createVulnerabilityDatabase } from './vulnerability-database/index.ts';

export function addCommands(program: Command): void {
  program
    .option(
      '--simulated',
      'use the simulated hypervisor and a recorded capture, also where network namespaces work',
    )
    .action(async (options: { simulated?: boolean }) => {
      try {
        process.exitCode = await run(options.simulated === true);
      } catch (error) {
        sayFatal(error);
        process.exitCode = 1;
      }
    });
  program
    .command('vulnerability-database')
    .description("serve the demo's copy of the NVD, a selection of its records, on this machine until Ctrl-C")
    .requiredOption('--port <port>', "port of this machine's loopback")
    .action(async ({ port }: { port: string }) => {
      const reporter = createReporter({ program: 'vulnerability-database' });
      process.exitCode = await runUntilSignal([createVulnerabilityDatabase(Number(port))], reporter);
    });
  program
    .command('simulated-site')
    .description('load the simulated site into the monitor: seven days, then minute by minute, until Ctrl-C')
    .requiredOption('--monitor <url>', 'where the monitor is')
    .requiredOption('--operations <url>', 'where operations is')
    .action(async (urls: { monitor: string; operations: string }) => {
      const reporter = createReporter({ program: 'simulated-site' });
      const { dataDir } = readDemoSettings(process.env);
      process.exitCode = await runUntilSignal(
        [
          createSimulatedSite({
            dataDir,
            monitorUrl: urls.monitor,
            operationsUrl: urls.operations,
            reporter,
          }),
        ],
        reporter,
      );
    });
}

async function run(isSimulated: boolean): Promise<number> {
  const settings = readDemoSettings(process.env);
  const interrupted = new AbortController();
  let signals = 0;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      signals += 1;
      if (signals > 2) process.exit(130);
      interrupted.abort();
    });
  }
  const demo = await startDemo(settings, isSimulated, interrupted.signal).catch((error: unknown) => {
    if (interrupted.signal.aborted && error instanceof CodedError && error.code === 'demo.interrupted')
      return null;
    throw error;
  });
  if (demo === null) return 0;
  await new Promise<void>((done) => {
    if (interrupted.signal.aborted) done();
    interrupted.signal.addEventListener('abort', () => done(), { once: true });
  });
  process.stderr.write('\nstopping ...\n');
  await demo.stop();
  process.stderr.write('stopped. Start again with the same data: npm start\n');
  return 0;
}
