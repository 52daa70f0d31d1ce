import { incidentsContract } from '#contracts/admin-api/incidents.ts';
import { liveContract } from '#contracts/admin-api/live.ts';
import { portScansContract } from '#contracts/admin-api/port-scans.ts';
import { minutesContract } from '#contracts/admin-api/schemas.ts';
import { vulnerabilitiesContract } from '#contracts/admin-api/vulnerabilities.ts';
import type { FeedReceiver } from '#operations/feeds/index.ts';
import type {
  ProtectFindings,
  ProtectIncidents,
  ProtectLive,
  ProtectScans,
  ProtectTraffic,
} from '#operations/protect/index.ts';

/** The receivers of operations, in the order of discovery and of the form; a new one is added here. */
export const createReceivers = (features: {
  protectTraffic: ProtectTraffic;
  protectLive: ProtectLive;
  protectIncidents: ProtectIncidents;
  protectScans: ProtectScans;
  protectFindings: ProtectFindings;
}): FeedReceiver[] => [
  {
    contract: minutesContract,
    hint: 'Read allocation targets and deliver minute telemetry.',
    readsTargets: true,
    invalidCode: 'protect_traffic.invalid',
    receive: features.protectTraffic.receive,
  },
  {
    contract: liveContract,
    hint: 'Read allocation targets and deliver live traffic in steps of ten seconds.',
    readsTargets: true,
    invalidCode: 'protect_live.invalid',
    receive: features.protectLive.receive,
  },
  {
    contract: incidentsContract,
    hint: 'Deliver attacks on servers and their state.',
    readsTargets: true,
    invalidCode: 'protect_incidents.invalid',
    receive: features.protectIncidents.receive,
  },
  {
    contract: portScansContract,
    hint: 'Fetch scan requests of customers and deliver results of port scans.',
    readsTargets: true,
    invalidCode: 'port_scans.invalid',
    receive: features.protectScans.receive,
  },
  {
    contract: vulnerabilitiesContract,
    hint: 'Deliver potential vulnerabilities of the services that scans found.',
    readsTargets: true,
    invalidCode: 'protect_findings.invalid',
    receive: features.protectFindings.receive,
  },
];
