/**
 * Read models: statements that join the tables of several features, for lists, pages and decisions that need one look.
 *
 * They only read. They check no permission: the feature that calls one passes the scope of the actor, and the owner is
 * part of the query. They import no feature, so that any feature may use them.
 */

export {
  type AccessFacts,
  accessColumns,
  findAccess,
  listDebtors,
  listSettledDebtors,
} from './access-store.ts';
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
  mailableMembers,
} from './alert-mail-store.ts';
export {
  findNic,
  findNicOf,
  hasServer,
  listAttachments,
  listNetworkMembers,
  listNicsOf,
  type Nic,
} from './attachment-store.ts';
export {
  type AttackQuery,
  type AttackRow,
  countOpenAttacks,
  incidentStateNow,
  listAttacks,
  type OpenAttackCounts,
} from './attack-list-store.ts';
export {
  type BandwidthSource,
  listServersSince,
  listUse,
  observedDays,
  ownScanDays,
  type PoolServer,
  type ServerLife,
  type UseRow,
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
export { eventRow, type NewEvent } from './event-subject-store.ts';
export {
  countFindings,
  countFindingsOfServers,
  isOutdated as isOutdatedCount,
  type ServerFindingCount,
} from './finding-count-store.ts';
export {
  type FindingListQuery,
  type ListedFinding,
  listAllFindings,
} from './finding-list-store.ts';
export {
  countServerFindings,
  type FindingFilter,
  type FindingPlace,
  type FindingQuery,
  type FindingRow,
  type FindingScope,
  type FindingState,
  type FindingSummary,
  listServerFindings,
  listUnableServices,
  summarizeServerFindings,
  type UnableRow,
} from './finding-store.ts';
export { type FindingTotals, type FindingTotalsQuery, totalFindings } from './finding-total-store.ts';
export { findKeys, type KeyRow, type KeySummary, listKeys, type ReachableTenant } from './key-store.ts';
export { countLiving } from './living-store.ts';
export { listOfferedLocations } from './location-store.ts';
export {
  type Attachment,
  type AttachmentState,
  countNetworks,
  findNetwork,
  type LabelCondition,
  listNetworks,
  type Network,
  type NetworkFilter,
  type NetworkMember,
  ownsNetwork,
  type SyncState,
} from './network-store.ts';
export { findOutcome, listAbandonedCreated, type OrderOutcome, settledOrders } from './order-store.ts';
export {
  type ConflictRow,
  listConflicts,
  listSetAside,
  listSources,
  type SetAsideRow,
  type SourceRow,
} from './protect-source-store.ts';
export { listScanCandidates, type ScanCandidate } from './scan-candidate-store.ts';
export {
  countPendingScans,
  type ListedScan,
  listAllScans,
  type PendingScans,
  type ScanListQuery,
} from './scan-list-store.ts';
export type { Scope } from './scope.ts';
export {
  type AddressHit,
  asWordQuery,
  type ServerHit,
  searchAddresses,
  searchServers,
  searchWords,
} from './search-store.ts';
export type {
  ActionCommand,
  PowerCommand,
  PowerState,
  ProvisioningState,
  Server,
  ServerAction,
  ServerAddress,
  ServerFailure,
  ServerStatus,
} from './server.ts';
export { serverChangeRow } from './server-change-store.ts';
export {
  type AddressCondition,
  listAttackEvents,
  listServerEvents,
  listServersOfAddresses,
  type ServerEvent,
} from './server-event-store.ts';
export { type InventoryRow, listInventory } from './server-inventory-store.ts';
export {
  countByStatus,
  countServers,
  type LabelTerm,
  type ListOrder,
  listServers,
  type ServerFilter,
} from './server-list-store.ts';
export { findOwnedServer, type OwnedServer } from './server-owner-store.ts';
export { clusterLocation, nodeServers, serverSizes } from './server-part-store.ts';
export { actionFields, findServer, rfc3339 } from './server-store.ts';
export { type DaySpending, listDaySpending } from './spending-store.ts';
export { chargeableTenant, organizationTenants, ownsTenant } from './tenant-part-store.ts';
export type { TenantStatus } from './tenant-status.ts';
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
