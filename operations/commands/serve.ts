import { runUntilSignal, sayFatal } from '#common/lifecycle/index.ts';
import { compose, partsOf } from '../composition.ts';
import { readOperationsSettings, requirePaymentGateway } from '../config.ts';
import { programDir } from '../platform.ts';
import { createDemoWorld } from './seed-demo/index.ts';
import { warnOfSettings } from './warn-of-settings.ts';

/** Runs the program until a signal; resolves with its exit code. */
export async function serve(): Promise<number> {
  try {
    const given = readOperationsSettings();
    const settings = { ...given, paymentGateway: requirePaymentGateway(given) };
    const operations = await compose(settings);
    const { reporter, clock } = operations;
    warnOfSettings(settings, reporter);
    const http = await operations.createServer();
    const demoWorld = createDemoWorld({
      features: operations,
      reporter,
      clock,
      driver: settings.hypervisor,
      dir: programDir(settings),
    });
    const parts = partsOf(operations, http, settings.demoWorld ? [demoWorld] : []);
    return await runUntilSignal(parts, reporter, () =>
      reporter.info('operations is ready', { url: http.url }),
    );
  } catch (error) {
    sayFatal(error);
    return 1;
  }
}
