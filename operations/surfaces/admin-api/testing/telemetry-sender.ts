/** A monitor that delivers minutes of one allocation after the other, for tests of the receiver. */
import assert from 'node:assert/strict';
import type { TelemetryPoint, TelemetryRequest, TelemetryTarget } from '#contracts/admin-api/schemas.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import { minutesAgo, point } from './telemetry-points.ts';

const someMinute = minutesAgo(15);

export async function createTelemetrySender(): Promise<TelemetrySender> {
  const world = await createWorld();
  return new TelemetrySender(world, await world.createToken(['protect_telemetry_ingest']));
}

export class TelemetrySender {
  readonly world: World;
  /** Of the project that delivers where no other token is given. */
  readonly token: string;
  /** Of the server that `freshAllocation` made last: its first address. */
  allocation!: Allocation;
  serverId = 0;
  tenantId = 0;

  constructor(world: World, token: string) {
    this.world = world;
    this.token = token;
  }

  /** Every test has a server of its own, whose addresses were assigned two hours ago. */
  async freshAllocation(name: string): Promise<void> {
    const { tenant } = await this.world.createCustomer(name);
    const { serverId } = await this.world.deploy(tenant, name);
    await this.world.backdate(serverId, '2 hours');
    this.allocation = (await this.world.addresses.listAllocationsOfServers([serverId]))[0]!;
    this.serverId = serverId;
    this.tenantId = tenant.id;
  }

  target(series: TelemetryPoint[], of: Allocation = this.allocation): TelemetryTarget {
    return { id: of.id, address: of.address, assigned_at: of.assignedAt, series };
  }

  request(targets: unknown[], more: Partial<TelemetryRequest> = {}): unknown {
    return {
      ...{ contract_version: 1, source_site_id: 7, cluster_ids: [this.world.clusterId], targets },
      ...more,
    };
  }

  /** A text is sent as it is. */
  post(body: unknown, bearer = this.token): Promise<Response> {
    return fetch(`${this.world.url}/api/admin/v1/protect/telemetry/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  }

  async receiptsOf(body: unknown, bearer?: string): Promise<string[]> {
    const answer = await this.post(body, bearer);
    assert.equal(answer.status, 200, await answer.clone().text());
    const { receipts } = (await answer.json()) as { receipts: { receipt: string }[] };
    return receipts.map((each) => each.receipt);
  }

  /** The minutes of the last day as they are stored. */
  stored() {
    const { serverId, tenantId } = this;
    const range = { fromMs: worldNowMs() - 86_400_000, toMs: worldNowMs() };
    return this.world.protectTraffic.readMinutes(systemActor, { serverId, tenantId }, range);
  }

  /** A token of a project of its own, as another monitor has. */
  async tokenOf(name: string): Promise<{ token: string; projectId: number }> {
    const permissions = ['protect_telemetry_ingest'];
    const { id } = await this.world.adminProjects.create(systemActor, {
      ...{ name, permissions, clusterIds: null },
    });
    return { token: (await this.world.adminProjects.issueToken(systemActor, id, null)).token, projectId: id };
  }

  /** The receipt of one minute with these bytes. */
  async receiptFrom(bearer: string, siteId: number, bytes: number): Promise<string> {
    const targets = [this.target([point(someMinute, { in: bytes, out: 1 })])];
    const [receipt] = await this.receiptsOf(this.request(targets, { source_site_id: siteId }), bearer);
    return receipt!;
  }

  /** As if the owner had delivered last so long ago. */
  async silence(interval: string): Promise<void> {
    await this.world.database.pool.query(
      'update protect_series set source_seen_at = svc_now() - $1::interval where allocation_id = $2',
      [interval, this.allocation.id],
    );
  }
}
