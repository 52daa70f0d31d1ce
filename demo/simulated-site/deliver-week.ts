/**
 * Minutes of the customers' servers that are older than the day which the monitor's feed goes back, so that customers have the
 * whole week too: the same minutes, made from the same plan, through the door that the feed uses.
 *
 * A minute that comes again changes nothing, so a start after a kill begins anew.
 */
import type { Clock } from '#common/clock/index.ts';
import type { AllocationTarget, TelemetryPoint, TelemetryRequest } from '#contracts/admin-api/schemas.ts';
import { transportName } from '#contracts/ip-protocols.ts';
import { attackOfDay } from './attacks.ts';
import { gapOfDay } from './build-upload.ts';
import { isUnder, observeMinute } from './observe-minute.ts';
import type { Pace } from './pace.ts';
import type { Hypervisor, SitePlan } from './plan.ts';

export interface DeliverDeps {
  plan: SitePlan;
  clock: Pick<Clock, 'nowMs'>;
  pace: Pace;
  signal: AbortSignal;
  source: { siteId: number; clusterId: number };
  /** `/protect/targets/` of operations. */
  listTargets(): Promise<readonly AllocationTarget[]>;
  /** `/protect/telemetry/` of operations; throws unless it is stored. */
  post(request: TelemetryRequest): Promise<void>;
}

const hourSeconds = 3_600;
/** As far as the monitor's feed goes back, and a margin. */
const feedSeconds = 23 * hourSeconds;

/** Delivers the hours from `fromMinute` on, the newest first; ends early when the signal is aborted. */
export async function deliverWeek(deps: DeliverDeps, fromMinute: number): Promise<void> {
  const { plan, clock, pace, signal, source } = deps;
  const hypervisor = plan.hypervisors[0]!;
  const places = new Map(hypervisor.servers.map(({ address }, place) => [address, place]));
  const targets = (await deps.listTargets()).filter(
    ({ address, cluster_id }) => cluster_id === source.clusterId && places.has(address),
  );
  const newest = Math.floor(clock.nowMs() / 1000 / hourSeconds) * hourSeconds - feedSeconds;
  for (let hour = newest; hour >= fromMinute && targets.length > 0 && !signal.aborted; hour -= hourSeconds) {
    const observed = pointsOfHour(plan, hypervisor, hour);
    await deps.post({
      contract_version: 1,
      source_site_id: source.siteId,
      cluster_ids: [source.clusterId],
      targets: targets.map(({ id, address, assigned_at }) => {
        return { id, address, assigned_at, series: observed[places.get(address)!]! };
      }),
    });
    await pace.pause(signal);
  }
}

/** Of each server of the hypervisor, the minutes in which its sensor listened. */
function pointsOfHour(plan: SitePlan, hypervisor: Hypervisor, hour: number): TelemetryPoint[][] {
  const points: TelemetryPoint[][] = hypervisor.servers.map(() => []);
  for (let minute = hour; minute < hour + hourSeconds; minute += 60) {
    const gap = gapOfDay(plan.seed, hypervisor.index, minute);
    if (gap && minute >= gap.fromMinute && minute < gap.endMinute) continue;
    const { hosts, usage } = observeMinute(plan, hypervisor, minute);
    const attack = attackOfDay(plan.seed, minute);
    for (const [place, { address, rxBytes, txBytes, packets }] of hosts.entries()) {
      const isAttacked = attack !== null && isUnder(attack, hypervisor, place, minute);
      points[place]!.push({
        timestamp: new Date(minute * 1000).toISOString(),
        ...{ inbound_bps: (rxBytes * 8) / 60, outbound_bps: (txBytes * 8) / 60, pps: packets / 60 },
        ...{ expected_bps: null, expected_pps: null },
        ddos_bps: isAttacked ? attack.pps * attack.packetBytes * 8 : 0,
        ddos_pps: isAttacked ? attack.pps : 0,
        coverage: 1,
        // As the feed: no name that only a remote address gives.
        applications: usage
          .filter((row) => row.evidence !== 'none' && [row.client, row.server].includes(address))
          .map((row) => ({
            name: row.name,
            inbound_bytes: row.direction === 'inbound' ? row.clientBytes : row.serverBytes,
            outbound_bytes: row.direction === 'inbound' ? row.serverBytes : row.clientBytes,
            transport: transportName(row.protocol),
            server_port: row.serverPort,
          })),
      });
    }
  }
  return points;
}
