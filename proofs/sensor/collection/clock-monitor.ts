/** A monitor for one life: it refuses implausible uploads, stores each upload once, and sometimes loses its answer. */
import { retentionRefusalMessage } from '#contracts/sensor-api/http.ts';
import { decodeUpload, decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { type ObservedMinute, wholeMinutes, withoutObserved } from '#contracts/sensor-api/unobserved-gaps.ts';
import type { HostTime, MonitorTime } from '#sensor/host-time/index.ts';
import type { MonitorAnswer, MonitorClient } from '#sensor/monitor-client/index.ts';
import { captureNames } from './clock-capture.ts';
import type { Life } from './clock-life.ts';
import type { ClockPlant } from './clock-plants.ts';

export interface ClockMonitor {
  isAway: boolean;
  /** Part of the answers that are lost. */
  lostShare: number;
  clientFor(host: HostTime, time: MonitorTime): MonitorClient;
  /** Tells a sensor the time, as any answer does. */
  tell(host: HostTime, time: MonitorTime): void;
}

export function createClockMonitor(deps: {
  trueMs: () => number;
  random: () => number;
  life: Life;
  lostShare: number;
  plant: ClockPlant | null;
}): ClockMonitor {
  const { trueMs, random, life } = deps;
  const known = new Set<string>();

  function judge(body: Uint8Array): { status: number; json: unknown } {
    const upload = decodeUpload(decompressUpload(body, 'zstd'));
    const refused = (status: number, code: string, message: string) => ({
      status,
      json: { error: { code, message } },
    });
    const { spoolId, sequence } = upload;
    const receipt = (word: string) => ({ status: 200, json: { spool_id: spoolId, sequence, receipt: word } });
    const key = `${spoolId} ${sequence}`;
    if (known.has(key)) return receipt('duplicate');
    const minutes = upload.minutes.map((one) => one.minute);
    const spoken = [...minutes, ...upload.gaps.map((gap) => gap.toMinute)];
    if (spoken.some((minute) => minute * 1000 > trueMs() + 300_000))
      return deps.plant === 'throws_away_what_is_ahead'
        ? refused(422, 'telemetry_refused', 'no')
        : refused(503, 'clock_ahead', 'set the clock');
    if (minutes.some((minute) => minute * 1000 < trueMs() - 90 * 86_400_000))
      return refused(422, 'telemetry_refused', retentionRefusalMessage);
    known.add(key);
    trimUnobservedGaps(wholeMinutes(upload));
    life.stored.push(...upload.minutes.map((minute) => ({ minute, upload: key, storedAtMs: trueMs() })));
    life.gaps.push(...upload.gaps.map((gap) => ({ gap, storedAtMs: trueMs() })));
    return receipt('accepted');
  }

  /** Like the monitor: a minute that was observed completely, and only once, has no gap. */
  function trimUnobservedGaps(whole: readonly ObservedMinute[]): void {
    const heard = whole.filter(
      (one) =>
        !life.stored.some(({ minute }) => minute.capture === one.capture && minute.minute === one.minute),
    );
    if (deps.plant === 'keeps_contradicted_gaps') return;
    life.gaps = life.gaps.flatMap(({ gap, storedAtMs }) => {
      const left = withoutObserved(gap, heard, captureNames);
      if (deps.plant === 'drops_whole_gaps' && left[0] !== gap) return [];
      return left.map((part) => ({ gap: part, storedAtMs }));
    });
  }

  const tell = (host: HostTime, time: MonitorTime) => {
    life.contacts.add(host.bootId);
    time.note(new Date(trueMs()).toUTCString(), host.read());
  };
  const monitor: ClockMonitor = {
    isAway: false,
    lostShare: deps.lostShare,
    tell(host, time) {
      if (monitor.isAway) throw new Error('away');
      tell(host, time);
    },
    clientFor: (host, time) => ({
      url: 'http://monitor.example',
      async request({ body }): Promise<MonitorAnswer> {
        const { spoolId, sequence } = decodeUpload(decompressUpload(body as Uint8Array, 'zstd'));
        const isLost = random() < monitor.lostShare;
        if (monitor.isAway || isLost) life.uncertain.add(`${spoolId} ${sequence}`);
        if (monitor.isAway) throw new Error('away');
        const answer = judge(body as Uint8Array);
        if (isLost) throw new Error('the answer is lost');
        tell(host, time);
        return { ...answer, headers: new Headers() };
      },
    }),
  };
  return monitor;
}
