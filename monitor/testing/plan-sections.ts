import { listSection, type PlanSection, versionSection } from '#monitor/sensors/index.ts';

/** Sections with every required field of a plan, and these protected addresses. */
export function planSections(addresses: readonly string[] = []): PlanSection[] {
  return [
    versionSection('capture', { application_usage_version: 1, application_protocol_version: 1 }),
    listSection<string>({
      name: 'protection',
      label: 'protected addresses',
      entriesMax: 4096,
      advice: 'Move servers to other nodes.',
      versions: {},
      list: async () => addresses,
      toFields: (entries) => ({ protected_targets: entries }),
      countEntries: async () => new Map(),
    }),
  ];
}
