/** What the page of a device shows, read from the features. */
import { type Claim, type Device, deviceKeyOf } from '#monitor/devices/index.ts';
import type { DeviceStep, Limited } from '#monitor/facts/index.ts';
import type { Range } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { readAround } from '../parts/chart-around.ts';
import type { DeviceApplication } from './device-parts.ts';

/** Applications are summed from minutes, so over one hour and a limited number of addresses. */
const applicationMs = 3_600_000;
const addressesMax = 8;
const eventsShown = 20;

export type DeviceData = Awaited<ReturnType<typeof readDevice>>;

export async function readDevice(deps: ConsoleDeps, device: Device, range: Range, nowMs: number) {
  const server = device.match?.endedAtMs === null ? device.match : null;
  const [connection, inventory, bindings, conflicts, events, steps, assessed] = await Promise.all([
    deps.connection.view(),
    deps.inventory.state(),
    deps.devices.listBindings(device.id),
    deps.devices.listConflicts(device.siteId, device.mac),
    deps.events.list(device.siteId, eventsShown, { mac: device.mac }),
    readSteps(deps, device, range),
    server && deps.vulnerabilities.findServer(server.clusterId, server.vmId),
  ]);
  const [applications, around] = await Promise.all([
    readApplications(deps, device, bindings, range, nowMs),
    readDeviceAround(deps, device, bindings, range, nowMs),
  ]);
  return { around, connection, inventory, bindings, conflicts, events, steps, applications, assessed };
}

export async function readSteps(
  deps: ConsoleDeps,
  device: Device,
  range: Range,
): Promise<Limited<DeviceStep>> {
  if (device.foreignReason !== null) return { items: [], sourceLimited: false };
  const { fromMs, toMs, stepSeconds } = range;
  return deps.traffic.readDevice(device.siteId, deviceKeyOf(device), fromMs, toMs, stepSeconds);
}

/** What happened to the addresses that it owned in the range. */
export async function readDeviceAround(
  deps: ConsoleDeps,
  device: Device,
  bindings: readonly Claim[],
  range: Range,
  nowMs: number,
) {
  const addresses = bindings
    .filter((one) => one.firstSeenMs < range.toMs && (one.endedAtMs ?? range.toMs) > range.fromMs)
    .slice(0, addressesMax)
    .map((one) => one.address);
  return readAround(deps, { siteId: device.siteId, addresses: [...new Set(addresses)] }, range, nowMs);
}

/** Applications of its addresses in the last hour of the range, only in minutes in which it owned them. */
async function readApplications(
  deps: ConsoleDeps,
  device: Device,
  bindings: readonly Claim[],
  range: Range,
  nowMs: number,
): Promise<DeviceApplication[]> {
  if (device.foreignReason !== null) return [];
  const toMs = Math.min(range.toMs, Math.ceil(nowMs / 60_000) * 60_000);
  const fromMs = Math.max(range.fromMs, toMs - applicationMs);
  const owned = bindings.filter((one) => one.firstSeenMs < toMs && (one.endedAtMs ?? toMs) > fromMs);
  const sums = new Map<string, DeviceApplication>();
  const read = async (binding: Claim) => {
    const from = Math.max(fromMs, binding.firstSeenMs) / 1000;
    const to = Math.min(toMs, Math.ceil((binding.endedAtMs ?? toMs) / 60_000) * 60_000) / 1000;
    return from < to
      ? deps.applications.readAddressApplications(device.siteId, binding.address, from, to)
      : [];
  };
  for (const uses of await Promise.all(owned.slice(0, addressesMax).map(read))) {
    for (const { name, direction, inboundBytes, outboundBytes } of uses) {
      const key = `${direction} ${name}`;
      const sum = sums.get(key) ?? { name, direction, inboundBytes: 0, outboundBytes: 0 };
      sum.inboundBytes += inboundBytes;
      sum.outboundBytes += outboundBytes;
      sums.set(key, sum);
    }
  }
  const bytes = (one: DeviceApplication) => one.inboundBytes + one.outboundBytes;
  return [...sums.values()].sort((a, b) => bytes(b) - bytes(a)).slice(0, 50);
}
