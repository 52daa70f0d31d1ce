/** A world whose servers have an hour of delivered minutes, and what tests of the traffic endpoint ask of it. */
import type { schemas } from '#contracts/customer-api/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { type DeliveredMinute, deliverMinutes } from '#operations/testing/deliver-minutes.ts';
import { worldStartMs } from '#operations/testing/world-time.ts';
import { createApiClient } from './client.ts';

export const minuteMs = 60_000;
/** One hour for all tests, two hours back: whole steps of any length up to an hour, and no turn of a minute matters. */
export const hourMs = Math.floor(worldStartMs / 3_600_000 - 2) * 3_600_000;
/** The n-th minute of that hour. */
export const at = (minute: number): number => hourMs + minute * minuteMs;
export const iso = (ms: number): string => new Date(ms).toISOString();
/** As a query has it. */
export const wholeHour = `from=${iso(hourMs)}&to=${iso(at(60))}`;

export type Point = schemas.TrafficPoint;
export const observedOf = (points: Point[]): Point[] => points.filter((point) => point.observed_minutes > 0);

export type TrafficApi = Awaited<ReturnType<typeof createTrafficApi>>;

/** The world is the caller's to end. */
export async function createTrafficApi() {
  const world = await createWorld();
  const token = await world.createToken(['protect_telemetry_ingest']);
  const call = createApiClient(world.url);
  return {
    ...{ world, call },
    /** By the minutes of the hour. */
    deliver: (of: Allocation, minutes: Record<number, DeliveredMinute>) =>
      deliverMinutes(
        world,
        token,
        of,
        Object.entries(minutes).map(([minute, had]) => [at(Number(minute)), had]),
      ),
    /** A customer with a server that is two days old. */
    async createReader(name: string) {
      const customer = await world.createCustomer(name);
      const key = await world.createKey(customer);
      const { serverId } = await world.deploy(customer.tenant, 'web-1');
      await world.backdate(serverId, '48 hours');
      const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
      const path = `/api/v2/servers/${serverId}/traffic`;
      const read = (query = '') => call('GET', `${path}?${query}`, { key });
      return { ...customer, key, serverId, path, read, first: first!, second: second! };
    },
  };
}
