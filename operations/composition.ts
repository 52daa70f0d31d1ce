/**
 * How operations is put together: the platform, the features on it, their background work, the surfaces over them.
 *
 * Nothing runs here; `serve` and the commands start the parts that they need. Tests compose the same program with other
 * parts (`overrides.ts`).
 */
import type { Part } from '#common/lifecycle/index.ts';
import type { HttpServer } from '#service-kit/http/index.ts';
import { allRoles } from '#service-kit/roles/index.ts';
import { createBackground } from './background.ts';
import type { OperationsSettings } from './config.ts';
import { createFeatures } from './features.ts';
import type { Overrides } from './overrides.ts';
import { createPlatform } from './platform.ts';
import { operationsRoles } from './roles.ts';
import { createHealthServer, createServer } from './server.ts';

export type Operations = Awaited<ReturnType<typeof compose>>;

/** Wires operations. */
export async function compose(settings: OperationsSettings, overrides: Overrides = {}) {
  const { roles = allRoles(operationsRoles) } = overrides;
  const features = await createFeatures(createPlatform(settings, overrides), overrides);
  return {
    ...features,
    background: createBackground(features),
    /** What this process does. */
    roles,
    /** Makes the HTTP server with every surface, or for a process without the role `web` with its health; commands need none. */
    createServer: () => (roles.has('web') ? createServer(features, overrides) : createHealthServer(features)),
  };
}

/** What `serve` runs in its roles, in the order in which it starts; `seeds` come between background and server. */
export function partsOf(operations: Operations, http: HttpServer, seeds: readonly Part[] = []): Part[] {
  const { database, secrets, notifications, limits, background, roles } = operations;
  return [
    ...[database, secrets.part, operations.system.watch],
    ...(roles.has('web') ? [notifications, limits.part] : []),
    ...(roles.has('jobs') ? background.workers : []),
    ...(roles.has('loops') ? background.loops : []),
    ...seeds,
    http,
  ];
}
