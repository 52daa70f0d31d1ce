import { type PlanSection, versionSection } from '#monitor/sensors/index.ts';

/** Limits of a capture's minutes (NET-9.4): number of usage rows, and recognised IP protocols (NET-2.2.4). */
export const captureSection: PlanSection = versionSection('capture', {
  application_usage_version: 1,
  application_protocol_version: 1,
});
