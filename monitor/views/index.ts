/**
 * Read models: statements that join the tables of several features, for lists and pages. They only read and import no
 * feature, so that any feature may use them.
 */

export {
  type AddressServer,
  countOwnedAddresses,
  countProtectedByNode,
  findAttackedOwners,
  findServersOfAddress,
  listAddressesOfServers,
  listAddressGenerations,
  listAddressOwners,
  listProtectedAddresses,
  listServersOfAddresses,
  type NodeAddresses,
  nameServers,
  readConnectionRevision,
  type ServerAddress,
  type ServerName,
} from './address-store.ts';
export {
  type AddressEpoch,
  countMaxima,
  type DetectorReport,
  listEpochsOf,
  listLoudMaxima,
  listReportedAddresses,
  listSpeakers,
  type MaximaRange,
  readDetectorReports,
  readPercentilesOf,
  type SpokenPeriod,
} from './detector-store.ts';
export {
  completeApplications,
  completeDevices,
  findApplicationNames,
  findDeviceKeys,
  listOwnedAddresses,
  listSensorNames,
  type OwnedAddress,
} from './explorer-store.ts';
export { listMailedDrills } from './mailed-drill-store.ts';
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
export {
  findSiteOfIncident,
  type LeftOutRows,
  listSensorViews,
  listSitesOfAccount,
  listSpoofedTraffic,
  nameSensors,
  nameSites,
  readLeftOut,
  readPlanScope,
  type SensorView,
  type SpoofedSum,
} from './sensor-store.ts';
export {
  listServerChanges,
  listToldChanges,
  readCertainUntil,
  type ServerChange,
  type ServerChangesAsked,
  type ToldChange,
} from './server-history-store.ts';
