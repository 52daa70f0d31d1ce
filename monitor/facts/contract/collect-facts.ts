/** From a capture's minute to what is kept of it. */
import type {
  TelemetryEvidence,
  TelemetryMinute,
  TelemetryUsageRow,
} from '#contracts/sensor-api/telemetry.ts';
import type { ApplicationKey, Direction } from './facts.ts';

/** The name under which a usage row is kept, what named it, and whether it says more than the remote address. */
export type NameApplication = (row: TelemetryUsageRow) => {
  name: string;
  /** Where it differs from the sensor's. */
  evidence?: TelemetryEvidence;
  isAttributed: boolean;
};

/** What a local address exchanged under one name. */
export interface ApplicationFact extends ApplicationKey {
  direction: Direction;
  /** The local endpoint; of internal traffic the client; null for traffic between two foreign ones. */
  localAddress: string | null;
  evidence: TelemetryEvidence;
  isAttributed: boolean;
  /** To and from the local endpoint. */
  inboundBytes: number;
  outboundBytes: number;
  packets: number;
  /** Unix milliseconds at which the local endpoint last sent; 0 for never. */
  lastSentMs: number;
}

/** A usage row under its kept name. */
export interface NamedPair extends TelemetryUsageRow {
  isAttributed: boolean;
}

export interface Usage {
  facts: ApplicationFact[];
  pairs: NamedPair[];
  /** Internal bytes of local addresses, to and from them. */
  lan: Map<string, { rxBytes: number; txBytes: number }>;
}

/** Rows of one local address, name and service become one fact; pairs stay as they are. */
export function collectUsage(usage: TelemetryMinute['usage'], nameApplication: NameApplication): Usage {
  const facts = new Map<string, ApplicationFact>();
  const pairs: NamedPair[] = [];
  const lan: Usage['lan'] = new Map();
  for (const row of usage) {
    const named = withName(row, nameApplication(row));
    pairs.push(named);
    addFact(facts, named);
    if (row.direction !== 'internal') continue;
    addLan(lan, row.client, row.serverBytes, row.clientBytes);
    addLan(lan, row.server, row.clientBytes, row.serverBytes);
  }
  return { facts: [...facts.values()], pairs, lan };
}

/** Field by field, which costs a third of two spreads: every row of telemetry passes here. */
function withName(row: TelemetryUsageRow, given: ReturnType<NameApplication>): NamedPair {
  return {
    client: row.client,
    server: row.server,
    protocol: row.protocol,
    serverPort: row.serverPort,
    direction: row.direction,
    name: given.name,
    evidence: given.evidence ?? row.evidence,
    isAttributed: given.isAttributed,
    clientBytes: row.clientBytes,
    serverBytes: row.serverBytes,
    packets: row.packets,
    clientLastSentMs: row.clientLastSentMs,
    serverLastSentMs: row.serverLastSentMs,
  };
}

/** Who of a usage row is local. */
export function localAddressOf(row: Pick<TelemetryUsageRow, 'direction' | 'client' | 'server'>) {
  return row.direction === 'transit' ? null : row.direction === 'inbound' ? row.server : row.client;
}

function addFact(facts: Map<string, ApplicationFact>, row: NamedPair): void {
  const { direction, protocol, serverPort, evidence, name, isAttributed } = row;
  const isHost = direction === 'inbound';
  const localAddress = localAddressOf(row);
  const key = `${direction} ${localAddress} ${protocol} ${serverPort} ${evidence} ${name}`;
  let fact = facts.get(key);
  if (!fact) {
    fact = {
      direction,
      localAddress,
      name,
      protocol,
      serverPort,
      evidence,
      isAttributed,
      inboundBytes: 0,
      outboundBytes: 0,
      packets: 0,
      lastSentMs: 0,
    };
    facts.set(key, fact);
  }
  fact.inboundBytes += isHost ? row.clientBytes : row.serverBytes;
  fact.outboundBytes += isHost ? row.serverBytes : row.clientBytes;
  fact.packets += row.packets;
  fact.lastSentMs = Math.max(fact.lastSentMs, isHost ? row.serverLastSentMs : row.clientLastSentMs);
}

function addLan(lan: Usage['lan'], address: string, rxBytes: number, txBytes: number): void {
  const sum = lan.get(address);
  if (!sum) lan.set(address, { rxBytes, txBytes });
  else {
    sum.rxBytes += rxBytes;
    sum.txBytes += txBytes;
  }
}
