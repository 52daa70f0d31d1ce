/** What the pages of sensors show, read from the features. */
import { CodedError } from '#common/errors/index.ts';
import { lossMinutes, outageMinutes } from '#monitor/alerts/index.ts';
import type { Live, LiveRate } from '#monitor/live/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { nodeServersMax } from './plan-section.ts';
import type { StateFacts } from './sensor-state.ts';

const dayMs = 86_400_000;
const gapsMax = 500;
const setAsideMax = 20;
const foreignMax = 100;
const spoofedMax = 100;

/** What is known of one sensor, and of its site as far as the sensor's page needs it. */
export type SensorData = Awaited<ReturnType<typeof readSensor>>;

export async function readSensor(deps: ConsoleDeps, sensor: SensorState, nowMs: number) {
  const { siteId, id } = sensor;
  const { sensors, traffic } = deps;
  const [conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, spoofed, servers] =
    await Promise.all([
      sensors.listConditions(siteId),
      traffic.listCaptures(siteId),
      ratesOf(deps.live, siteId),
      sensors.listInterfaces(siteId),
      traffic.listGaps(siteId, nowMs - dayMs, nowMs, gapsMax),
      sensors.listNodes(siteId),
      traffic.listForeign(siteId, nowMs - dayMs, nowMs, id, foreignMax),
      deps.setAsides.listOfSensor(siteId, id, setAsideMax),
      deps.spoofing.listOfSensor(siteId, id, nowMs - dayMs, spoofedMax),
      readNodeServers(deps, sensor),
    ]);
  const facts = await stateFactsOf(deps, siteId, rates);
  return { conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, spoofed, servers, facts };
}

/** Servers in the clusters that its node may belong to. */
async function readNodeServers(deps: ConsoleDeps, { siteId, node, clusterId }: SensorState) {
  const mapped = (await deps.sites.listClusters()).filter((mapping) => mapping.siteId === siteId);
  const clusterIds = mapped.map((mapping) => mapping.clusterId);
  const own = clusterId === null ? clusterIds : clusterIds.filter((id) => id === clusterId);
  const found = await deps.inventory.listNodeServers(own, node, nodeServersMax + 1);
  return { rows: found.slice(0, nodeServersMax), isComplete: found.length <= nodeServersMax };
}

/** The newest rates; empty when the live store does not answer, because the rest of the page does not need them. */
export async function ratesOf(live: Live, siteId: number): Promise<LiveRate[]> {
  try {
    return await live.listRates(siteId);
  } catch (error) {
    if (error instanceof CodedError && error.code.startsWith('live.')) return [];
    throw error;
  }
}

/** The facts for the states of all sensors of a site. */
export async function stateFactsOf(
  deps: Pick<ConsoleDeps, 'sensors' | 'traffic'>,
  siteId: number,
  rates: readonly LiveRate[],
): Promise<StateFacts> {
  const [health, outages, newest, losses] = await Promise.all([
    deps.sensors.listHealth(siteId),
    deps.traffic.listOutages(outageMinutes),
    deps.traffic.listLosses(1),
    deps.traffic.listLosses(lossMinutes),
  ]);
  return { health, outages, losses: [...newest, ...losses], rates };
}
