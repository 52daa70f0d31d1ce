/** What sensors send in the world of recorded answers: minutes, gaps, probes, attacks, scans, live windows. */
import { encodeLive } from '#contracts/sensor-api/live-codec.ts';
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { attackOfDay } from '#demo/simulated-site/attacks.ts';
import { buildBody, incidentsOf } from '#demo/simulated-site/build-upload.ts';
import { planSite, seedOfDemo } from '#demo/simulated-site/plan.ts';
import { createDraw } from '#demo/simulated-site/random.ts';
import type { Monitor } from '#monitor/composition.ts';
import { evidenceBody } from '#monitor/evidence/testing/captures.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { observation } from '#monitor/incidents/testing/observations.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { hostInterfaces, result, service } from '#monitor/scans/testing/scan-world.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { captureMinute, host, usageRow } from '#monitor/testing/index.ts';
import { nginx, openssh } from '#monitor/vulnerabilities/testing/assess-world.ts';

/** Amid an hour, a day and a month, half an hour after the attack of the day on the simulated site. */
export const nowMs = Date.UTC(2027, 5, 16, 13, 20, 5);
export const [minuteMs, hourMs] = [60_000, 3_600_000];
/** Start of the minute this long ago, seconds since 1970. */
const minuteAt = (agoMs: number) => Math.floor((nowMs - agoMs) / minuteMs) * 60;
const idOf = (kind: string, number: number) => `${kind}-0000-4000-8000-${String(number).padStart(12, '0')}`;

export interface Sites {
  siteId: number;
  simulatedId: number;
  probeId: number;
}
/** Addresses of each server, by its name. */
export type Addresses = Readonly<Record<string, readonly string[]>>;
export interface Sensor extends EnrolledSensor {
  credential: string;
}

export async function enrol(monitor: Monitor, siteId: number, node: string): Promise<Sensor> {
  const { token } = await monitor.sensors.createToken(systemActor, siteId);
  const request = { token, host_name: node, node, sensor_version: '0.2.0' };
  const { credential } = (await monitor.sensors.enrol(request))!;
  return { ...(await monitor.sensors.authenticate(credential))!, credential };
}

const uploadMinutes = 30;

/** One upload at a time: the workers of the inbox would number devices in any order. */
async function apply(monitor: Monitor, sensor: Sensor, body: Uint8Array): Promise<void> {
  await monitor.inbox.receive(sensor, body, 'zstd');
  await monitor.inbox.drain();
}

/** Uploads of the sensor of the servers. */
export function createTraffic(monitor: Monitor, sensor: Sensor, of: Addresses, { probeId }: Sites) {
  let sequence = 0;
  const encode = (part: Partial<TelemetryUpload>) => {
    sequence += 1;
    const identity = { spoolId: idOf('5b0c8f1e', 1), sequence, sensorVersion: '0.2.0' };
    return compressUpload(encodeUpload({ ...identity, minutes: [], gaps: [], ...part }));
  };
  // A day of every twentieth minute, and three hours of each but those of a gap.
  const minutes = [
    ...Array.from({ length: 63 }, (_, at) => minuteAt((24 - at / 3) * hourMs)),
    ...Array.from({ length: 178 }, (_, at) => minuteAt((179 - at) * minuteMs)),
  ];
  const gap = { fromMinute: minuteAt(119 * minuteMs), toMinute: minuteAt(110 * minuteMs) };
  const waiting = minutes.filter((minute) => minute < gap.fromMinute || minute > gap.toMinute);
  return {
    /** What is over at that time, with results of a probe, the gap and the host's interfaces. */
    async sendMinutes(agoMs: number): Promise<void> {
      const over = waiting.filter((minute) => minute + 60 <= minuteAt(agoMs));
      waiting.splice(0, over.length);
      for (let at = 0; at < over.length; at += uploadMinutes) {
        const part = over.slice(at, at + uploadMinutes);
        const upload = {
          minutes: part.flatMap((minute) => minutesOf(of, minute)),
          probes: part.map((minute) => measure(probeId, minute)),
        };
        await apply(monitor, sensor, encode(upload));
      }
      const interfaces = {
        interfaces: hostInterfaces,
        interfacesLeftOut: 0,
        neighbours: [],
        neighboursLeftOut: 0,
      };
      const gaps =
        gap.toMinute < minuteAt(agoMs) ? [{ ...gap, capture: '', reason: 'sensor_down' as const }] : [];
      const last = { gaps, inventory: { observedAtMs: Date.now(), ...interfaces } };
      await apply(monitor, sensor, encode(last));
    },
    /** Attacks, one of which goes on, each with evidence: whichever is asked for has some. */
    async sendAttacks(): Promise<void> {
      const floods = attacksOn(of);
      await monitor.inbox.receiveUrgent(sensor, encode({ incidents: floods }), 'zstd', requireIncidentsAlone);
      for (const { id, startedAtMs } of floods)
        await monitor.evidence.receive(sensor, id, evidenceBody(startedAtMs));
    },
  };
}

function measure(probe: number, minute: number) {
  const lost = (minute / 60) % 50 === 0 ? 2 : 0;
  const rtt = { minUs: 900, medianUs: 1_200 + (minute % 7_200) / 60, maxUs: 2_000 };
  return {
    probe,
    minute,
    firstSentMs: 100,
    sent: 6,
    lost,
    rtt,
    failure: lost > 0 ? ('timeout' as const) : null,
  };
}

/** What the uplink and the bridge saw: all servers on both, less of it on the uplink. */
function minutesOf(of: Addresses, minute: number): TelemetryMinute[] {
  const draw = createDraw(11, minute);
  const sentMs = minute * 1000 + 9_000;
  const usage = Object.values(of).flatMap(([client = '', second = ''], at) => {
    const scale = Math.ceil(draw() * 90_000) * (at + 1);
    const row = (part: Parameters<typeof usageRow>[0]) =>
      usageRow({
        client,
        clientBytes: scale,
        serverBytes: 9 * scale,
        clientLastSentMs: sentMs,
        serverLastSentMs: sentMs,
        ...part,
      });
    const hosted = {
      client: `198.51.100.${10 + Math.floor(draw() * 9)}`,
      server: client,
      direction: 'inbound' as const,
    };
    return [
      row({}),
      row({ ...hosted, name: `shop-${at}.example` }),
      row({
        client: second,
        server: '2001:db8:ffff::7',
        name: 'mirror.example.org',
        evidence: 'http_host',
        serverPort: 80,
      }),
      row({ server: '198.51.100.53', name: '198.51.100.53', evidence: 'none', protocol: 17, serverPort: 53 }),
      row({ ...hosted, name: hosted.client, evidence: 'none', serverPort: 22 }),
    ];
  });
  const sum = (address: string, key: 'rx' | 'tx') =>
    usage.reduce((bytes, { client, server, clientBytes, serverBytes }) => {
      const [fromClient, fromServer] = key === 'tx' ? [clientBytes, serverBytes] : [serverBytes, clientBytes];
      return bytes + (client === address ? fromClient : 0) + (server === address ? fromServer : 0);
    }, 900);
  return (['uplink', 'bridge'] as const).map((role) => {
    const hosts = Object.values(of)
      .flat()
      .map((address) => host(address, sum(address, 'rx'), sum(address, 'tx')));
    const totals = {
      ipPackets: hosts.reduce((packets, one) => packets + one.packets, 0),
      ipBytes: hosts.reduce((bytes, one) => bytes + one.rxBytes + one.txBytes, 0),
    };
    return captureMinute({
      minute,
      role,
      capture: role === 'uplink' ? 'uplink0' : 'br0',
      hosts,
      usage,
      totals,
    });
  });
}

function attacksOn({ web = [], shop = [] }: Addresses) {
  const ended = { startedAtMs: nowMs - 52 * minuteMs, lastObservedAtMs: nowMs - 45 * minuteMs };
  const active = { startedAtMs: nowMs - 3 * minuteMs, lastObservedAtMs: nowMs - 40_000 };
  const info = { severity: 'info' as const, class: 'high_volume' as const };
  return [
    observation({
      id: idOf('7d3a4e2b', 1),
      target: web[0]!,
      ...ended,
      recoveredAtMs: ended.lastObservedAtMs,
    }),
    observation({
      id: idOf('7d3a4e2b', 2),
      target: shop[0]!,
      ...active,
      class: 'udp_flood',
      capture: 'uplink0',
    }),
    observation({
      id: idOf('7d3a4e2b', 3),
      target: web[1]!,
      ...ended,
      recoveredAtMs: ended.lastObservedAtMs,
      ...info,
    }),
  ].map((one) => ({ ...one, capture: 'uplink0', hasEvidence: true }));
}

/** Two hypervisors of the demo's simulated site, one of them under its attack. */
export async function sendSimulated(monitor: Monitor, siteId: number): Promise<void> {
  const plan = planSite(seedOfDemo);
  const attack = attackOfDay(plan.seed, nowMs / 1000)!;
  for (const at of [attack.hypervisor, attack.hypervisor + 1]) {
    const hypervisor = plan.hypervisors[at]!;
    const sensor = await enrol(monitor, siteId, hypervisor.node);
    const order = { fromMinute: minuteAt(90 * minuteMs), endMinute: minuteAt(0) };
    for (let half = 0; half < 2; half += 1) {
      const fromMinute = order.fromMinute + half * 45 * 60;
      const identity = { spoolId: idOf('5b0c8f1e', 10 + at), sequence: half + 1 };
      const body = buildBody(plan, hypervisor, identity, {
        part: 'minutes',
        fromMinute,
        endMinute: fromMinute + 45 * 60,
      });
      await apply(monitor, sensor, body);
    }
    if (incidentsOf(plan, hypervisor, order).length === 0) continue;
    const identity = { spoolId: idOf('5b0c8f1e', 10 + at), sequence: 3 };
    const body = buildBody(plan, hypervisor, identity, { ...order, part: 'incidents' });
    await monitor.inbox.receiveUrgent(sensor, body, 'zstd', requireIncidentsAlone);
  }
}

/** A complete scan of each target that the sensor's plan names: an old OpenSSH, and web servers. */
export async function scanServers(monitor: Monitor, sensor: Sensor): Promise<void> {
  const { targets } = await monitor.scans.readPlan(sensor);
  for (const [at, { target_id }] of targets.toSorted((a, b) => (a.address < b.address ? -1 : 1)).entries()) {
    const id = idOf('9e1c7d5a', at + 1);
    const report = result(target_id, 'full', [], { scan_id: id });
    const [found, first_observed_at] = [
      [openssh('8.9'), ...(at % 2 === 0 ? [nginx('1.18.0')] : [])],
      report.finished_at,
    ];
    report.services = found.map((one) =>
      service(one.port!, { scan_id: id, first_observed_at, observed_at: first_observed_at, ...one }),
    );
    await monitor.scans.receive(sensor, report);
  }
}

/** The last six minutes in windows of ten seconds. */
export async function sendLive(monitor: Monitor, sensor: Sensor, of: Addresses): Promise<void> {
  const end = Math.floor(nowMs / 10_000) * 10_000;
  const windows = Array.from({ length: 36 }, (_, at) => {
    const startedAtMs = end - (36 - at) * 10_000;
    const hosts = Object.values(of)
      .flat()
      .map((address, i) => {
        return { address, rxBytes: 10_000 * (i + 1) + at, txBytes: 5_000 * (i + 1) + at, packets: 40 };
      });
    const ipBytes = hosts.reduce((sum, { rxBytes, txBytes }) => sum + rxBytes + txBytes, 0);
    const { totals } = captureMinute({ totals: { ipBytes, ipPackets: 40 * hosts.length } });
    return {
      capture: 'uplink0',
      role: 'uplink' as const,
      startedAtMs,
      observedMs: 10_000,
      totals,
      hosts,
      hostsLeftOut: 0,
    };
  });
  const upload = { runId: idOf('5b0c8f1e', 2), sensorVersion: '0.2.0', windows };
  await monitor.live.receive(sensor, compressUpload(encodeLive(upload)), 'zstd');
}
