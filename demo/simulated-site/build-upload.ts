/** The uploads of a simulated sensor, as a real one encodes them. */

import { type GapReason, unobservedReasons } from '#contracts/minute-reasons.ts';
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { attackOfDay, reportAttack } from './attacks.ts';
import { observeMinute } from './observe-minute.ts';
import type { Hypervisor, SitePlan } from './plan.ts';
import { between, createDraw, pick } from './random.ts';

/** What one upload holds: minutes of a range, or the incidents that ended in it. */
export interface UploadOrder {
  part: 'minutes' | 'incidents';
  /** Seconds since 1970; the end is not of the range. */
  fromMinute: number;
  endMinute: number;
}

export interface UploadIdentity {
  spoolId: string;
  sequence: number;
}

/** As the monitor's pages show it. */
const sensorVersion = 'simulated';

/** The same bytes for the same plan, hypervisor, identity and order. */
export function buildBody(
  plan: SitePlan,
  hypervisor: Hypervisor,
  identity: UploadIdentity,
  order: UploadOrder,
): Uint8Array {
  const observed =
    order.part === 'minutes'
      ? observeRange(plan, hypervisor, order)
      : { minutes: [], gaps: [], incidents: incidentsOf(plan, hypervisor, order) };
  return compressUpload(encodeUpload({ ...identity, sensorVersion, ...observed }));
}

/** All reports of the incident on this hypervisor that ended in the range, if one did. */
export function incidentsOf(plan: SitePlan, hypervisor: Hypervisor, order: Omit<UploadOrder, 'part'>) {
  const attack = attackOfDay(plan.seed, order.endMinute - 60);
  const isOurs =
    attack?.hypervisor === hypervisor.index &&
    attack.endMinute > order.fromMinute &&
    attack.endMinute <= order.endMinute;
  return isOurs ? reportAttack(plan.seed, hypervisor, attack) : [];
}

function observeRange(
  plan: SitePlan,
  hypervisor: Hypervisor,
  { fromMinute, endMinute }: UploadOrder,
): Pick<TelemetryUpload, 'minutes' | 'gaps'> {
  const minutes: TelemetryUpload['minutes'] = [];
  const gaps: TelemetryUpload['gaps'] = [];
  for (let minute = fromMinute; minute < endMinute; minute += 60) {
    const gap = gapOfDay(plan.seed, hypervisor.index, minute);
    if (!gap || minute < gap.fromMinute || minute >= gap.endMinute) {
      minutes.push(observeMinute(plan, hypervisor, minute));
      continue;
    }
    const last = gaps.at(-1);
    if (last?.reason === gap.reason && last.toMinute === minute - 60) last.toMinute = minute;
    else gaps.push({ fromMinute: minute, toMinute: minute, capture: '', reason: gap.reason });
  }
  return { minutes, gaps };
}

// Times at which a simulated sensor collected nothing, with the reason that it gives. On most days there is none.

interface PlannedGap {
  /** Seconds since 1970; the first minute, and the end, which is not of the gap. */
  fromMinute: number;
  endMinute: number;
  reason: GapReason;
}

const daySeconds = 86_400;
const share = 0.12;
const reasons: readonly GapReason[] = ['sensor_down', ...unobservedReasons];

/** The gap of a hypervisor on the UTC day that holds this minute, or null. It lies wholly within the day. */
export function gapOfDay(seed: number, hypervisor: number, minute: number): PlannedGap | null {
  const day = Math.floor(minute / daySeconds);
  const draw = createDraw(seed, 2, hypervisor, day);
  if (draw() >= share) return null;
  const minutes = between(draw, 5, 90);
  const fromMinute = day * daySeconds + between(draw, 0, 1440 - minutes) * 60;
  return { fromMinute, endMinute: fromMinute + minutes * 60, reason: pick(draw, reasons) };
}
