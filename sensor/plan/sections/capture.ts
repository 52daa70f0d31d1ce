/** What the monitor takes in a minute, and the minute without the rest (NET-9.4). */
import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { isAdvertised, type PlanFields, type ReadSection, versionsOnly } from './section.ts';

export interface CaptureSection {
  /** The monitor takes usage rows (NET-9.4). */
  takesUsage: boolean;
  /** The monitor tells recognised IP protocols apart (NET-2.2.4). */
  takesProtocolNames: boolean;
}

export function readCapture(fields: PlanFields): ReadSection<CaptureSection> {
  return versionsOnly({
    takesUsage: isAdvertised(fields.application_usage_version),
    takesProtocolNames: isAdvertised(fields.application_protocol_version),
  });
}

/** The minute without what this monitor would not understand. */
export function downgradeForMonitor(minute: TelemetryMinute, plan: CaptureSection): TelemetryMinute {
  if (!plan.takesUsage) return { ...minute, usage: [] };
  if (plan.takesProtocolNames) return minute;
  const usage = minute.usage.map((row) => (row.evidence === 'ip_protocol' ? { ...row, name: 'IP' } : row));
  return { ...minute, usage };
}
