import { systemClock } from '#common/clock/index.ts';
import { runUntilSignal, sayFatal } from '#common/lifecycle/index.ts';
import { createBackground } from '../background.ts';
import { readOperationsSettings, reporterOf, requirePaymentGateway } from '../config.ts';
import { createDemoWorld } from '../demo-world/index.ts';
import { createFeatures, createOperationsDatabase, programDir } from '../features.ts';
import { createServer } from '../server.ts';
import { warnOfSettings } from './warn-of-settings.ts';

/** Runs the program until a signal; resolves with its exit code. */
export async function serve(): Promise<number> {
  try {
    const given = readOperationsSettings();
    const settings = { ...given, paymentGateway: requirePaymentGateway(given) };
    const reporter = reporterOf(settings);
    warnOfSettings(settings, reporter);
    const database = createOperationsDatabase(settings, reporter);
    const features = await createFeatures(settings, database, reporter);
    const http = await createServer(settings, features, reporter);
    const background = createBackground(settings, features, reporter);
    const demoWorld = createDemoWorld({
      features,
      reporter,
      clock: systemClock,
      driver: settings.hypervisor,
      dir: programDir(settings),
    });
    const parts = [
      database,
      features.secrets.part,
      features.notifications,
      ...background,
      ...(settings.demoWorld ? [demoWorld] : []),
      http,
    ];
    return await runUntilSignal(parts, reporter, () =>
      reporter.info('operations is ready', { url: http.url }),
    );
  } catch (error) {
    sayFatal(error);
    return 1;
  }
}
