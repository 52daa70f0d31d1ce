/** The uploads of a simulated sensor, as a real one encodes them. */
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { attackOfDay, reportAttack } from './attacks.ts';
import { gapOfDay } from './gaps.ts';
import { observeMinute } from './observe-minute.ts';
import type { Hypervisor, SitePlan } from './plan.ts';

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
