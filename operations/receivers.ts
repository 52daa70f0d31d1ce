import type { FeedReceiver } from '#operations/feeds/index.ts';
import {
  createFindingsReceiver,
  createIncidentsReceiver,
  createLiveReceiver,
  createMinutesReceiver,
  createScansReceiver,
  type ProtectFindings,
  type ProtectIncidents,
  type ProtectLive,
  type ProtectScans,
  type ProtectTraffic,
} from '#operations/protect/index.ts';

/** The receivers of operations, in the order of discovery and of the form; a new one is added here. */
export function createReceivers(features: {
  protectTraffic: ProtectTraffic;
  protectLive: ProtectLive;
  protectIncidents: ProtectIncidents;
  protectScans: ProtectScans;
  protectFindings: ProtectFindings;
}): FeedReceiver[] {
  return [
    createMinutesReceiver(features.protectTraffic),
    createLiveReceiver(features.protectLive),
    createIncidentsReceiver(features.protectIncidents),
    createScansReceiver(features.protectScans),
    createFindingsReceiver(features.protectFindings),
  ];
}
