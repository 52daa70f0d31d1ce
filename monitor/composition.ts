/**
 * How the monitor is put together: the platform, the features on it, and the loops that run beside the server.
 *
 * Nothing runs here; `serve` and the commands start the parts that they need. Tests compose the same program with other
 * parts (`overrides.ts`).
 */
import type { Part } from '#common/lifecycle/index.ts';
import { createRankingLoop } from './applications/index.ts';
import type { MonitorConfig } from './config.ts';
import { createRollUpLoop } from './facts/index.ts';
import { createFeatures, type Features } from './features.ts';
import {
  createWake,
  incidents as incidentFeed,
  minutes as minuteFeed,
  type RunningFeed,
} from './feeds/index.ts';
import type { Overrides } from './overrides.ts';
import { createPlatform } from './platform.ts';
import { createNamesLoop } from './search/index.ts';

export interface Monitor extends Features {
  /** Loops that run beside the server, in the order in which they start. */
  loops: readonly Part[];
}

/** Wires the monitor. */
export function compose(config: MonitorConfig, overrides: Overrides = {}): Monitor {
  const features = createFeatures(createPlatform(config, overrides), overrides);
  return { ...features, loops: createLoops(features) };
}

function createLoops(features: Features): Part[] {
  const { config, live, inbox, incidents, inventory, feeds, alerts, handOff, protection, retention } =
    features;
  const { vulnerabilities } = features;
  return [
    live.part,
    ...(config.hasInboxWorker ? [inbox.worker] : []),
    incidents.loop,
    createRollUpLoop(features),
    ...(config.hasRanking ? [createRankingLoop(features)] : []),
    createNamesLoop(features),
    protection.replays,
    ...(config.hasInventorySync ? [inventory.loop] : []),
    ...feeds.all.filter(({ cadence }) => cadence.isOn).flatMap((feed) => partsOfFeed(features, feed)),
    ...(config.hasAlerts ? alerts.parts : []),
    ...(config.hasVulnerabilitySync ? vulnerabilities.parts : []),
    ...(config.hasHandOff ? handOff.parts : []),
    ...(config.hasMaintenance ? [retention.loop] : []),
  ];
}

/** A feed's loop; that of incidents is also woken by their changes, and that of minutes when targets may have changed. */
export function partsOfFeed(
  {
    database,
    feeds,
  }: { database: Pick<Features['database'], 'pool'>; feeds: Pick<Features['feeds'], 'forgetTargets'> },
  { feed, loop }: RunningFeed,
): Part[] {
  const pool = () => database.pool;
  if (feed.name === incidentFeed.name) return [loop, createWake(pool, 'incidents', loop)];
  if (feed.name !== minuteFeed.name) return [loop];
  const wake = () => {
    feeds.forgetTargets();
    loop.wake();
  };
  return [loop, createWake(pool, 'targets', { wake })];
}
