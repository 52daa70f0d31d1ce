/**
 * How operations is put together: the platform, the features on it, their background work, the surfaces over them.
 *
 * Nothing runs here; `serve` and the commands start the parts that they need. Tests compose the same program with other
 * parts (`overrides.ts`).
 */
import type { Part } from '#common/lifecycle/index.ts';
import type { HttpServer } from '#service-kit/http/index.ts';
import { type Background, createBackground } from './background.ts';
import type { OperationsSettings } from './config.ts';
import { createFeatures, type Features } from './features.ts';
import type { Overrides } from './overrides.ts';
import { createPlatform } from './platform.ts';
import { createServer } from './server.ts';

export interface Operations extends Features {
  background: Background;
  /** Makes the HTTP server with every surface; commands need none. */
  createServer(): Promise<HttpServer>;
}

/** Wires operations. */
export async function compose(settings: OperationsSettings, overrides: Overrides = {}): Promise<Operations> {
  const features = await createFeatures(createPlatform(settings, overrides), overrides);
  return {
    ...features,
    background: createBackground(features),
    createServer: () => createServer(features, overrides.onApp),
  };
}

/** Everything that `serve` runs, in the order in which it starts; `seeds` come between background and server. */
export function partsOf(operations: Operations, http: HttpServer, seeds: readonly Part[] = []): Part[] {
  const { database, secrets, notifications, background } = operations;
  return [database, secrets.part, notifications, ...background.parts, ...seeds, http];
}
