import { type PlanSection, versionSection } from '#monitor/sensors/index.ts';

/** Sensors may send live windows (NET-9.1). */
export const liveSection: PlanSection = versionSection('live', { live_version: 1 });
