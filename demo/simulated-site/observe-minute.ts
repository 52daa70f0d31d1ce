/** What the sensor of a simulated hypervisor observed in one minute. */
import type { TelemetryHost, TelemetryMinute, TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import { rhythmAt } from '#lab/traffic/daily-rhythm.ts';
import { attackOfDay, attackSources, type PlannedAttack } from './attacks.ts';
import { captureName, type Hypervisor, type SimulatedServer, type SitePlan, type Use } from './plan.ts';
import { createDraw, type Draw, pick } from './random.ts';

/** On Saturdays and Sundays there is less to do. */
const weekendFactor = 0.65;
/** So that an attack is a peak of the week, and the week is seen beside it. */
const volumeFactor = 12;
/** Bytes of a mean packet. */
const packetBytes = 700;
/** What every server sends and gets beside its applications. */
const idleBytes = 600;

export function observeMinute(plan: SitePlan, hypervisor: Hypervisor, minute: number): TelemetryMinute {
  const draw = createDraw(plan.seed, 4, hypervisor.index, minute);
  const attack = attackOfDay(plan.seed, minute);
  const usage: TelemetryUsageRow[] = [];
  const hosts: TelemetryHost[] = [];
  for (const [place, server] of hypervisor.servers.entries()) {
    const rows = server.uses.flatMap((use) => drawUse(draw, server, use, minute) ?? []);
    if (attack && isUnder(attack, hypervisor, place, minute))
      rows.push(...attackRows(server, attack, minute));
    usage.push(...rows);
    hosts.push(sumHost(server, rows));
  }
  const ipPackets = hosts.reduce((sum, host) => sum + host.packets, 0);
  return {
    minute,
    capture: captureName,
    role: 'uplink',
    observedMs: 60_000,
    totals: {
      packets: ipPackets + 12,
      ipPackets,
      ipBytes: hosts.reduce((sum, host) => sum + host.rxBytes + host.txBytes, 0),
      nonIpPackets: 12,
      parserDropped: 0,
      // Now and then the kernel loses a few.
      kernelDropped: draw() < 0.004 ? Math.ceil(draw() * 40) : 0,
      detailTruncated: 0,
    },
    hosts,
    usage,
  };
}

function drawUse(draw: Draw, server: SimulatedServer, use: Use, minute: number): TelemetryUsageRow | null {
  const weekday = Math.floor(minute / 86_400 + 4) % 7;
  const activity = rhythmAt(use.rhythm, minute * 1000) * (weekday === 0 || weekday === 6 ? weekendFactor : 1);
  // Always the same number of draws, so that a use does not change those after it.
  const [chance, size, peerDraw, sent] = [draw(), draw(), draw(), draw()];
  if (chance >= use.chance * activity) return null;
  const factor = volumeFactor * (0.4 + 1.2 * size) * Math.sqrt(activity);
  const clientBytes = Math.ceil(use.clientBytes * factor);
  const serverBytes = Math.ceil(use.serverBytes * factor);
  const peer = pick(() => peerDraw, use.peers);
  const isHosted = use.direction === 'inbound';
  const sentMs = minute * 1000 + 1_000 + Math.floor(sent * 55_000);
  return {
    client: isHosted ? peer : server.address,
    server: isHosted ? server.address : peer,
    protocol: use.protocol,
    serverPort: use.port,
    direction: use.direction,
    name: use.name || peer,
    evidence: use.evidence,
    clientBytes,
    serverBytes,
    packets: Math.ceil((clientBytes + serverBytes) / packetBytes) + 4,
    clientLastSentMs: sentMs,
    serverLastSentMs: sentMs + 200,
  };
}

/** Whether the attack hits this server of the hypervisor in this minute. */
export function isUnder(
  attack: PlannedAttack,
  { index }: Hypervisor,
  server: number,
  minute: number,
): boolean {
  return (
    attack.hypervisor === index &&
    attack.server === server &&
    minute >= attack.fromMinute &&
    minute < attack.endMinute
  );
}

/** An attack's packets of one minute; nothing answers them. */
function attackRows(server: SimulatedServer, attack: PlannedAttack, minute: number): TelemetryUsageRow[] {
  const packets = Math.floor((attack.pps * 60) / attackSources.length);
  return attackSources.map((client) => ({
    client,
    server: server.address,
    protocol: attack.class === 'syn_flood' ? 6 : 17,
    serverPort: 27_015,
    direction: 'inbound',
    name: client,
    evidence: 'none',
    clientBytes: packets * attack.packetBytes,
    serverBytes: 0,
    packets,
    clientLastSentMs: minute * 1000 + 59_000,
    serverLastSentMs: 0,
  }));
}

function sumHost({ address, mac }: SimulatedServer, rows: readonly TelemetryUsageRow[]): TelemetryHost {
  const host = { rxBytes: idleBytes, txBytes: idleBytes, packets: 8 };
  for (const row of rows) {
    const isHosted = row.direction === 'inbound';
    host.rxBytes += isHosted ? row.clientBytes : row.serverBytes;
    host.txBytes += isHosted ? row.serverBytes : row.clientBytes;
    host.packets += row.packets;
  }
  return { address, isLocal: true, ...host, deviceKey: `${captureName}|${mac}` };
}
