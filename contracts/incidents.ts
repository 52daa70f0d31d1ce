/** Closed lists of attacks beside their classes (`attack-classes.ts`), on every wire and in both databases. */

/** `info`: traffic over a threshold that need not be an attack, such as a download or a scan. */
export const incidentSeverities = ['attack', 'info'] as const;
export type IncidentSeverity = (typeof incidentSeverities)[number];

/** As the protected address sees it. */
export const attackDirections = ['inbound', 'outbound'] as const;
export type AttackDirection = (typeof attackDirections)[number];

/** `stale`: nothing was reported since the last observation. */
export const incidentStates = ['active', 'stale', 'recovered'] as const;
export type IncidentState = (typeof incidentStates)[number];

/** `partial`: a part was not observed, so rates and totals are lower bounds. */
export const incidentCoverages = ['complete', 'partial', 'unknown'] as const;
export type IncidentCoverage = (typeof incidentCoverages)[number];

export const targetKinds = ['host', 'prefix', 'capture'] as const;
export type TargetKind = (typeof targetKinds)[number];

/** What was done, in words for customers. */
export const incidentActions = {
  alerted: 'Our operators were alerted',
  blackholed: 'All traffic to the address was dropped in the network',
  filtered: 'Attack traffic was filtered in the network',
  dropped: 'Attack traffic was dropped at the hypervisor',
  command: 'A mitigation command ran',
  webhook: 'A mitigation system was called',
} as const;
export type ActionKind = keyof typeof incidentActions;
export const actionKinds = Object.keys(incidentActions) as ActionKind[];
