/**
 * How the monitor is put together: the platform, the features on it, and the loops that run beside the server.
 *
 * Nothing runs here; `serve` and the commands start the parts that they need. Tests compose the same program with other
 * parts (`overrides.ts`).
 */
import type { Part } from '#common/lifecycle/index.ts';
import { allRoles } from '#service-kit/roles/index.ts';
import { createRankingLoop } from './applications/index.ts';
import type { MonitorConfig } from './config.ts';
import { createRollUpLoop } from './facts/index.ts';
import { createFeatures, type Features } from './features.ts';
import {
  createWake,
  incidents as incidentFeed,
  live as liveFeed,
  minutes as minuteFeed,
  type RunningFeed,
} from './feeds/index.ts';
import type { Overrides } from './overrides.ts';
import { createPlatform } from './platform.ts';
import { type MonitorRole, monitorRoles } from './roles.ts';
import { createNamesLoop } from './search/index.ts';
import { createHealthServer, createMonitorServer } from './server.ts';

export type Monitor = ReturnType<typeof compose>;

/** Wires the monitor. */
export function compose(config: MonitorConfig, overrides: Overrides = {}) {
  const { roles = allRoles(monitorRoles) } = overrides;
  const features = createFeatures(createPlatform(config, overrides), overrides);
  const loops = [
    features.system.watch,
    features.live.part,
    ...(roles.has('web') ? [features.limits.part] : []),
    ...(roles.has('inbox') ? [features.inbox.worker] : []),
    ...(roles.has('loops') ? createLoops(features) : []),
    ...createExchange(features, roles),
  ];
  /** Makes the HTTP server with every surface, or for a process without the role `web` with its health; commands need none. */
  const createServer = () =>
    roles.has('web') ? createMonitorServer(config, monitor) : createHealthServer(config, monitor);
  const monitor = {
    ...features,
    /** What this process does. */
    roles,
    /** What runs beside the server in these roles, in the order in which it starts. */
    loops,
    createServer,
  };
  return monitor;
}

/** What looks after stored data, the role `loops`. */
function createLoops(features: Features): Part[] {
  const { config, incidents, alerts, handOff, protection, retention, vulnerabilities } = features;
  return [
    incidents.loop,
    createRollUpLoop(features),
    ...(config.hasRanking ? [createRankingLoop(features)] : []),
    createNamesLoop(features),
    protection.replays,
    ...(config.hasAlerts ? alerts.parts : []),
    ...(config.hasVulnerabilitySync ? vulnerabilities.parts : []),
    ...(config.hasHandOff ? handOff.parts : []),
    ...(config.hasMaintenance ? [retention.loop] : []),
  ];
}

/** What passes between the monitor and operations: the role `live` for the live feed, `feeds` for all else. */
function createExchange(features: Features, roles: ReadonlySet<MonitorRole>): Part[] {
  const { config, inventory, feeds } = features;
  const isHere = ({ feed, cadence }: RunningFeed) =>
    cadence.isOn && roles.has(feed.name === liveFeed.name ? 'live' : 'feeds');
  return [
    ...(roles.has('feeds') && config.hasInventorySync ? [inventory.loop] : []),
    ...feeds.all.filter(isHere).flatMap((feed) => partsOfFeed(features, feed)),
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
  if (feed.name === incidentFeed.name) return [createWake(pool, 'incidents', loop), loop];
  if (feed.name !== minuteFeed.name) return [loop];
  const wake = () => {
    feeds.forgetTargets();
    loop.wake();
  };
  return [createWake(pool, 'targets', { wake }), loop];
}
