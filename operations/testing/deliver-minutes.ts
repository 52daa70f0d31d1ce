/** Minutes as a monitor delivers them, through the admin API. */
import assert from 'node:assert/strict';
import type { TelemetryPoint } from '#contracts/admin-api/schemas.ts';
import type { Allocation } from '#operations/addresses/index.ts';

/** What a minute had; what is absent is unknown. `in` and `out` are bytes. */
export interface DeliveredMinute extends Partial<Omit<TelemetryPoint, 'timestamp'>> {
  in?: number | null;
  out?: number | null;
}

interface Receiver {
  url: string;
  clusterId: number;
}

/** Delivers these minutes of a generation, by the time of their start; every one of them must be accepted. */
export async function deliverMinutes(
  world: Receiver,
  token: string,
  of: Allocation,
  minutes: readonly (readonly [atMs: number, DeliveredMinute])[],
): Promise<void> {
  const series = minutes.map(([atMs, minute]) => pointOf(atMs, minute));
  for (let at = 0; at < series.length; at += 60) {
    const target = { id: of.id, address: of.address, assigned_at: of.assignedAt };
    const answer = await fetch(`${world.url}/api/admin/v1/protect/telemetry/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        contract_version: 1,
        source_site_id: 1,
        cluster_ids: [world.clusterId],
        targets: [{ ...target, series: series.slice(at, at + 60) }],
      }),
    });
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.equal(JSON.parse(text).receipts[0].receipt, 'accepted', text);
  }
}

function pointOf(atMs: number, { in: inbound, out: outbound, ...rest }: DeliveredMinute): TelemetryPoint {
  const rate = (bytes: number | null | undefined) => (bytes == null ? null : (bytes * 8) / 60);
  return {
    timestamp: new Date(atMs).toISOString(),
    inbound_bps: rate(inbound),
    outbound_bps: rate(outbound),
    pps: null,
    expected_bps: null,
    expected_pps: null,
    ddos_bps: null,
    ddos_pps: null,
    coverage: null,
    applications: [],
    ...rest,
  };
}
