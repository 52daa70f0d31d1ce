/** Labels for the monitor's codes, the same on every page. */
import { gapRows, type MinuteLoss } from '#contracts/minute-reasons.ts';

/** The reason of a gap; an unknown code is shown unchanged. */
export const gapReason = (gap: { reason: string }): string =>
  gapRows[gap.reason as MinuteLoss]?.words ?? gap.reason;

const eventKinds: Readonly<Record<string, string>> = {
  ddos_detected: 'attack detected',
  telemetry_rejected: 'upload rejected',
  ip_conflict_opened: 'address in conflict',
  ip_conflict_resolved: 'conflict resolved',
  spoofed_traffic: 'spoofed traffic',
  server_state_changed: 'server switched on or off',
};

/** Label of an event's kind; an unknown kind is shown by its name. */
export const eventName = (kind: string): string => eventKinds[kind] ?? kind.replaceAll('_', ' ');
