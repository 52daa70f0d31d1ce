import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import type { LiveDeps } from './index.ts';

const minuteMs = 60_000;

/**
 * Windows without the addresses that servers of other nodes had in their minute. They are not kept at all: a window is
 * shown for an hour, and the minute's own counters say what the sensor told, marked as foreign.
 */
export async function withoutForeign(
  checkAddresses: LiveDeps['checkAddresses'],
  sensorId: number,
  windows: readonly LiveWindow[],
): Promise<readonly LiveWindow[]> {
  const subjects = new Set(windows.flatMap((window) => window.hosts.map((host) => host.address)));
  if (!checkAddresses || subjects.size === 0) return windows;
  const isForeign = await checkAddresses([...subjects].map((subject) => ({ sensorId, subject })));
  return windows.map((window) => {
    const minute = Math.floor(window.startedAtMs / minuteMs) * 60;
    const hosts = window.hosts.filter((host) => !isForeign(sensorId, host.address, minute));
    return hosts.length === window.hosts.length ? window : { ...window, hosts };
  });
}
