/** `./svc monitor serve`: the database, the server and the loops, until a signal. */
import { runUntilSignal } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { readConfig } from '../config.ts';
import { createMonitorServer } from '../server.ts';
import { createDemoWorld } from './seed-demo.ts';

export async function serve(environment: NodeJS.ProcessEnv): Promise<number> {
  const config = readConfig(environment);
  const monitor = compose(config);
  const server = await createMonitorServer(config, monitor);
  const parts = [monitor.database, monitor.secrets.part, server, ...monitor.loops];
  if (config.isDemoWorld) parts.push(createDemoWorld(config, monitor));
  return runUntilSignal(parts, monitor.reporter, () => {
    monitor.reporter.info('ready', { url: config.publicUrl ?? server.url });
  });
}
