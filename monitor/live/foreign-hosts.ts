import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import type { LiveDeps } from './deps.ts';

const minuteMs = 60_000;

/**
 * Windows without addresses of servers on other nodes. They are not stored: windows are kept for a short time only, and
 * the minute's own counters keep the report, marked as foreign.
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
