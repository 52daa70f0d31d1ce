import type { TelemetryMinute, TelemetryUsageRow } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { nameApplication } from './catalog.ts';
import { type ApplicationFact, type EndpointPair, insertFacts, insertPairs, pairsKeptMs } from './store.ts';

/** Appends what an upload's captures saw used. Pairs older than their 24 hours are not stored at all. */
export async function addMinutes(
  trx: Queryable,
  siteId: number,
  captures: ReadonlyMap<string, number>,
  minutes: readonly TelemetryMinute[],
  nowMs: number,
): Promise<void> {
  for (const minute of minutes) {
    if (minute.usage.length === 0) continue;
    const origin = {
      siteId,
      captureId: captures.get(minute.capture)!,
      vantage: minute.role,
      minute: minute.minute,
    };
    await insertFacts(trx, origin, collectFacts(minute.usage));
    if (minute.minute * 1000 > nowMs - pairsKeptMs)
      await insertPairs(trx, origin, collectPairs(minute.usage));
  }
}

/** Rows of one local address, name and service become one fact. */
export function collectFacts(usage: readonly TelemetryUsageRow[]): ApplicationFact[] {
  const facts = new Map<string, ApplicationFact>();
  for (const row of usage) {
    const { name, isAttributed } = nameApplication(row);
    const isHost = row.direction === 'inbound';
    const localAddress = row.direction === 'transit' ? null : isHost ? row.server : row.client;
    const lastSentMs = isHost ? row.serverLastSentMs : row.clientLastSentMs;
    const key = [row.direction, localAddress, row.protocol, row.serverPort, row.evidence, name].join(' ');
    let fact = facts.get(key);
    if (!fact) {
      fact = {
        scope: scopeOf(row.direction),
        direction: row.direction,
        localAddress,
        name,
        protocol: row.protocol,
        serverPort: row.serverPort,
        evidence: row.evidence,
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
    fact.lastSentMs = Math.max(fact.lastSentMs, lastSentMs);
  }
  return [...facts.values()];
}

function collectPairs(usage: readonly TelemetryUsageRow[]): EndpointPair[] {
  return usage.map((row) => ({ ...row, scope: scopeOf(row.direction), name: nameApplication(row).name }));
}

function scopeOf(direction: TelemetryUsageRow['direction']): ApplicationFact['scope'] {
  return direction === 'internal' || direction === 'transit' ? direction : 'internet';
}
