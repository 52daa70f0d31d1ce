/**
 * Read models: statements that join the tables of several features, for lists and pages. They only read and import no
 * feature, so that any feature may use them.
 */
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
