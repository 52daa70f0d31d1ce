/**
 * Takes out of uplinks what others sent from an address.
 *
 * A host that routes puts its own MAC on everything that leaves, so an uplink can't tell spoofed packets from those of the owner.
 * The bridges of the same host can: for an address that one of them saw spoofed in a minute or the one before, the uplink
 * reports the usage that the bridge saw, and no counters of the address. Its capture totals stay as they are.
 */
import type { LiveWindow } from '#contracts/sensor-api/live.ts';
import type { TelemetryMinute, TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';
import type { SensorPlan } from '#sensor/plan/index.ts';
import { addDetail, type LocalWindow, noTotals } from './merge.ts';

const minuteMs = 60_000;
/** How long an uplink's live window waits for those of the bridges. */
const windowTicksMax = 4;

/** A window of an uplink, and the calls of `tick` since it came. */
interface HeldWindow {
  window: LocalWindow;
  ticks: number;
}

interface UplinkSettlerDeps {
  /** Bridges that listen now. */
  bridges(): readonly string[];
  onWindow(window: LocalWindow): void;
}

export class UplinkSettler {
  readonly #deps: UplinkSettlerDeps;
  /** Until when each address was spoofed, unix milliseconds. */
  readonly #spoofedUntil = new Map<string, number>();
  #owned: ReadonlySet<string> = new Set();
  /** The last minute that a bridge reported: an uplink's report of it may come later. */
  #bridgedMs = Number.NEGATIVE_INFINITY;
  #held: HeldWindow[] = [];
  /** The start of the last window of each bridge. */
  readonly #lastWindows = new Map<string, number>();

  constructor(deps: UplinkSettlerDeps) {
    this.#deps = deps;
  }

  follow({ owners }: Pick<SensorPlan, 'owners'>): void {
    this.#owned = new Set(owners.map(({ address }) => address));
  }

  /** All reports of one minute, or one that is late. */
  settle(minutes: TelemetryMinute[]): TelemetryMinute[] {
    for (const { minute, spoofed = [] } of minutes)
      this.#note(
        spoofed.filter(({ reason }) => reason === undefined).map(({ address }) => address),
        minute * 1000 + minuteMs,
      );
    const bridges = minutes.filter(({ role }) => role === 'bridge');
    const startMs = (minutes[0]?.minute ?? 0) * 1000;
    const spoofed = new Set([...this.#spoofedUntil.keys()].filter((one) => this.#isSpoofed(one, startMs)));
    for (const [address, untilMs] of this.#spoofedUntil)
      if (untilMs < startMs - minuteMs) this.#spoofedUntil.delete(address);
    if (bridges.length > 0) this.#bridgedMs = Math.max(this.#bridgedMs, startMs);
    if (spoofed.size === 0 || startMs > this.#bridgedMs) return minutes;
    const seen = bridges.flatMap(({ usage }) => usage);
    return minutes.map((one) => (one.role === 'uplink' ? this.#settleMinute(one, spoofed, seen) : one));
  }

  /** Passes the window on, that of an uplink after those of the bridges. */
  offer(window: LocalWindow): void {
    if (window.role === 'uplink' && this.#owned.size > 0) this.#held.push({ window, ticks: 0 });
    else {
      this.#note(window.spoofed, window.startedAtMs + window.observedMs);
      this.#lastWindows.set(window.capture, window.startedAtMs);
      this.#deps.onWindow(window);
    }
    this.#release();
  }

  /** Call about twice a second. */
  tick(): void {
    for (const one of this.#held) one.ticks += 1;
    this.#release();
  }

  #release(): void {
    if (this.#held.length === 0) return;
    const bridges = this.#deps.bridges();
    const isDue = ({ window, ticks }: HeldWindow) =>
      ticks > windowTicksMax ||
      bridges.every((name) => (this.#lastWindows.get(name) ?? -1) >= window.startedAtMs);
    const due = this.#held.filter(isDue);
    this.#held = this.#held.filter((one) => !due.includes(one));
    for (const { window } of due) this.#deps.onWindow(this.#settleWindow(window, bridges.length > 0));
  }

  #settleWindow<T extends LiveWindow>(window: T, hasBridges: boolean): T {
    if (!hasBridges || this.#spoofedUntil.size === 0) return window;
    const hosts = window.hosts.filter(({ address }) => !this.#isSpoofed(address, window.startedAtMs));
    return { ...window, hosts };
  }

  /** Usage that bridges saw takes the place of the uplink's own, on the first uplink that saw the address. */
  #settleMinute(
    uplink: TelemetryMinute,
    spoofed: Set<string>,
    seen: readonly TelemetryUsageRow[],
  ): TelemetryMinute {
    const isTaken = (address: string) => this.#isSpoofed(address, uplink.minute * 1000);
    const here = new Set(uplink.hosts.map(({ address }) => address).filter((one) => spoofed.delete(one)));
    const kept = uplink.usage.filter((row) => !localEnds(row).some(isTaken));
    const instead = seen.filter((row) => this.#mayReplace(row, here));
    const { detector } = uplink;
    const rows = detector?.rows.filter((row) => row.direction === 'inbound' || !isTaken(row.address));
    return {
      ...uplink,
      hosts: uplink.hosts.filter(({ address }) => !isTaken(address)),
      ...addDetail([
        { totals: uplink.totals, usage: kept },
        { totals: noTotals, usage: instead },
      ]),
      ...(detector && rows && { detector: { ...detector, rows } }),
    };
  }

  /** Traffic with the Internet: not with another server of the host, for which it would not pass an uplink. */
  #mayReplace(row: TelemetryUsageRow, here: ReadonlySet<string>): boolean {
    if (row.direction !== 'outbound' && row.direction !== 'inbound') return false;
    const [local, remote] = row.direction === 'inbound' ? [row.server, row.client] : [row.client, row.server];
    return here.has(local) && !this.#owned.has(remote);
  }

  #note(addresses: readonly string[], untilMs: number): void {
    for (const address of addresses)
      if (address !== '')
        this.#spoofedUntil.set(address, Math.max(untilMs, this.#spoofedUntil.get(address) ?? 0));
  }

  /** A packet that a bridge saw at the end of a minute may pass the uplink in the next. */
  #isSpoofed(address: string, startMs: number): boolean {
    return (this.#spoofedUntil.get(address) ?? 0) > startMs - minuteMs;
  }
}

function localEnds({ direction, client, server }: TelemetryUsageRow): string[] {
  if (direction === 'transit') return [];
  return direction === 'internal' ? [client, server] : [direction === 'inbound' ? server : client];
}
