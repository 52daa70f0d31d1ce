import { CodedError } from '#common/errors/index.ts';
import { runUntilSignal, sayFatal } from '#common/lifecycle/index.ts';
import { compose, partsOf } from '../composition.ts';
import { readOperationsSettings, requirePaymentGateway } from '../config.ts';
import { programDir } from '../platform.ts';
import type { OperationsRole } from '../roles.ts';
import { createDemoWorld } from './seed-demo/index.ts';
import { warnOfSettings } from './warn-of-settings.ts';

/** Runs the program in these roles, or in all, until a signal; resolves with its exit code. */
export async function serve(only?: ReadonlySet<OperationsRole>): Promise<number> {
  try {
    const given = readOperationsSettings();
    const settings = { ...given, paymentGateway: requirePaymentGateway(given) };
    if (only && settings.demoWorld)
      throw new CodedError('config.invalid', 'A demo world runs in one process: leave out --only.');
    const operations = await compose(settings, only ? { roles: only } : {});
    const { reporter, clock } = operations;
    warnOfSettings(settings, reporter, process.env);
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
      reporter.info('operations is ready', { url: http.url, ...(only && { roles: [...only].join(',') }) }),
    );
  } catch (error) {
    sayFatal(error);
    return 1;
  }
}
