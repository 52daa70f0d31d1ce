/**
 * Read models: statements that join the tables of several features, for lists, pages and decisions that need one look.
 *
 * They only read. They check no permission: the feature that calls one passes the scope of the actor, and the owner is
 * part of the query. They import no feature, so that any feature may use them.
 */

export {
  type DueAlertMail,
  type DueAttackMail,
  type DueFindingMail,
  type DuePortMail,
  findDueAttackMail,
  findDueFindingMail,
  findDuePortMail,
  hasSubscriber,
  type ListedInMail,
  listMailable,
  mailableMembers,
} from './alert-mail-store.ts';
export {
  type AttackQuery,
  type AttackRow,
  countOpenAttacks,
  incidentStateNow,
  listAttacks,
  type OpenAttackCounts,
} from './attack-list-store.ts';
export {
  type AccountNearing,
  attackDays,
  type BandwidthSource,
  listNearing,
  listServersSince,
  listUnsettledAccounts,
  listUse,
  observedDays,
  ownScanDays,
  type ServerLife,
  type UseRow,
  type UsingAccount,
} from './bandwidth-store.ts';
export {
  countTests,
  type Delivery,
  type DueDelivery,
  type FailingEndpoint,
  findDeliveredEvent,
  listDeliveries,
  listFailing,
  nextDelivery,
  type QueueHealth,
  readQueueHealth,
  subscribedEndpoints,
} from './delivery-store.ts';
export {
  type AddressCondition,
  eventRow,
  listAttackEvents,
  listServerEvents,
  listServersOfAddresses,
  type NewEvent,
  type ServerEvent,
  serverChangeRow,
} from './event-store.ts';
export {
  countFindings,
  countFindingsOfServers,
  countServerFindings,
  type FindingFilter,
  type FindingListQuery,
  type FindingPlace,
  type FindingQuery,
  type FindingRow,
  type FindingScope,
  type FindingSummary,
  type FindingTotals,
  type FindingTotalsQuery,
  isOutdated as isOutdatedCount,
  type ListedFinding,
  listAllFindings,
  listServerFindings,
  listUnableServices,
  type ServerFindingCount,
  summarizeServerFindings,
  totalFindings,
  type UnableRow,
} from './finding-store.ts';
export {
  findKeys,
  findMinter,
  findOwnersKey,
  type KeyRow,
  type KeySummary,
  listKeys,
  listKeysBelow,
  type ReachableTenant,
} from './key-store.ts';
export { type Availability, listAvailability, listOfferedLocations } from './location-store.ts';
export {
  type Attachment,
  type AttachmentState,
  countNetworks,
  findNetwork,
  findNic,
  findNicOf,
  hasServer,
  listAttachments,
  listNetworkBridges,
  listNetworkMembers,
  listNetworks,
  listNicsOf,
  listSegmentsOfNode,
  type Network,
  type NetworkFilter,
  type NetworkMember,
  type Nic,
  ownsNetwork,
} from './network-store.ts';
export { findOutcome, listAbandonedCreated, settledOrders } from './order-store.ts';
export {
  type ConflictRow,
  listConflicts,
  listSetAside,
  listSources,
  type SetAsideRow,
  type SourceRow,
} from './protect-source-store.ts';
export { findReserved, listReserved, type ReservedAddress } from './reserved-address-store.ts';
export {
  countPendingScans,
  type ListedScan,
  listAllScans,
  listScanCandidates,
  type PendingScans,
  type ScanCandidate,
  type ScanListQuery,
} from './scan-store.ts';
export type { Scope } from './scope.ts';
export {
  type AddressHit,
  asWordQuery,
  type ServerHit,
  searchAddresses,
  searchServers,
  searchWords,
} from './search-store.ts';
export {
  countByStatus,
  countServers,
  type LabelTerm,
  type ListOrder,
  listServers,
  type ServerFilter,
} from './server-list-store.ts';
export {
  type ActionCommand,
  actionFields,
  clusterLocation,
  findOwnedServer,
  findServer,
  listInventory,
  listOwnedServers,
  listSoldServers,
  type MachineCommand,
  nodeServers,
  type PowerCommand,
  type PowerState,
  type ProvisioningState,
  rfc3339,
  type Server,
  type ServerAction,
  type ServerFailure,
  type ServerStatus,
  type SoldServer,
  serverSizes,
} from './server-store.ts';
export { findSnapshot, listSnapshots, type Snapshot } from './snapshot-store.ts';
export {
  type AccessFacts,
  accessColumns,
  chargeableTenant,
  countLiving,
  type DaySpending,
  findAccess,
  listDaySpending,
  listDebtors,
  listSettledDebtors,
  organizationTenants,
  ownsTenant,
  type TenantStatus,
} from './tenant-store.ts';
export { listTrafficServers, type TrafficServer } from './traffic-server-store.ts';
export {
  type FleetAccount,
  type FleetKey,
  firstUsageDay,
  type KeyUsage,
  listKeyUsage,
  listTopAccounts,
  listTopKeys,
  openingOf,
} from './usage-store.ts';
