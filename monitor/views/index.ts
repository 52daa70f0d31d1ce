/**
 * Read models: statements that join the tables of several features, for lists and pages. They only read and import no
 * feature, so that any feature may use them.
 */

export { type AddressOwners, countOwnedAddresses, listAddressOwners } from './address-owner-store.ts';
export { type AddressServer, listServersOfAddresses } from './address-servers-store.ts';
export { type AddressGeneration, listAddressGenerations } from './allocation-generation-store.ts';
export { type AttackedOwner, findAttackedOwners } from './attacked-address-store.ts';
export { readConnectionRevision } from './connection-revision-store.ts';
export { type AddressEpoch, listEpochsOf } from './detector-epoch-store.ts';
export {
  countMaxima,
  listLoudMaxima,
  listReportedAddresses,
  listSpeakers,
  type MaximaRange,
  readPercentilesOf,
  type SpokenPeriod,
} from './detector-maxima-store.ts';
export { type DetectorReport, readDetectorReports } from './detector-report-store.ts';
export {
  completeApplications,
  completeDevices,
  findApplicationNames,
  findDeviceKeys,
  listOwnedAddresses,
  listSensorNames,
  type OwnedAddress,
} from './explorer-store.ts';
export { readCertainUntil } from './inventory-age-store.ts';
export { type LeftOutRows, readLeftOut } from './left-out-store.ts';
export { listMailedDrills } from './mailed-drill-store.ts';
export { findSiteOfIncident, listSitesOfAccount } from './place-store.ts';
export { readPlanScope } from './plan-scope-store.ts';
export { listSensorViews, type SensorView } from './probe-sensor-store.ts';
export {
  countProtectedByNode,
  listProtectedAddresses,
  type NodeAddresses,
} from './protected-address-store.ts';
export {
  countScanCandidates,
  listScanCandidates,
  readScanHost,
  type ScanCandidate,
  type ScanHost,
} from './scan-candidate-store.ts';
export {
  type AddressHit,
  type ApplicationHit,
  type DeviceHit,
  findAddresses,
  findApplications,
  findDevicesByMac,
  findDevicesByName,
  findMachines,
  findSensors,
  findSites,
  type MachineHit,
  type SensorHit,
  type SiteHit,
} from './search-store.ts';
export { nameSensors } from './sensor-name-store.ts';
export {
  findServersOfAddress,
  listAddressesOfServers,
  nameServers,
  type ServerAddress,
  type ServerName,
} from './server-address-store.ts';
export { listServerChanges, type ServerChange, type ServerChangesAsked } from './server-history-store.ts';
export { nameSites } from './site-name-store.ts';
export { listSpoofedTraffic, type SpoofedSum } from './spoofed-traffic-store.ts';
export { listToldChanges, type ToldChange } from './vm-change-store.ts';
