/** `./svc monitor serve`: the database, the server and the loops, until a signal. */
import { CodedError } from '#common/errors/index.ts';
import { runUntilSignal } from '#common/lifecycle/index.ts';
import { compose } from '../composition.ts';
import { findUnknownSettings, readConfig } from '../config.ts';
import type { MonitorRole } from '../roles.ts';
import { createDemoWorld } from './seed-demo.ts';

/** Runs the program in these roles, or in all. */
export async function serve(environment: NodeJS.ProcessEnv, only?: ReadonlySet<MonitorRole>) {
  const config = readConfig(environment);
  if (only && config.isDemoWorld)
    throw new CodedError('config.invalid', 'A demo world runs in one process: leave out --only.');
  // A process with the console runs the embedded database; others on its machine join it.
  const monitor = compose(config, only ? { roles: only, embedded: only.has('web') ? 'own' : 'join' } : {});
  for (const { name, meant } of findUnknownSettings(environment))
    monitor.reporter.warn('there is no setting of this name', { setting: name, ...(meant && { meant }) });
  const server = await monitor.createServer();
  const parts = [monitor.database, monitor.secrets.part, monitor.factEngine.part, server, ...monitor.loops];
  if (config.isDemoWorld) parts.push(createDemoWorld(config, monitor));
  return runUntilSignal(parts, monitor.reporter, () => {
    const url = monitor.roles.has('web') ? (config.publicUrl ?? server.url) : server.url;
    monitor.reporter.info('ready', { url, ...(only && { roles: [...only].join(',') }) });
  });
}
