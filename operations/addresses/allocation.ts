/** The assignment of an address to a server, from its start to its end. */
export interface Allocation {
  id: number;
  poolId: number;
  clusterId: number;
  tenantId: number;
  serverId: number;
  /** Canonical text. */
  address: string;
  family: 4 | 6;
  prefixLength: number;
  gateway: string;
  reverseDns: string | null;
  isPrimary: boolean;
  /** RFC 3339 with microseconds: exact text, because it is compared as a generation's mark. */
  assignedAt: string;
  releasedAt: string | null;
}

export interface AllocationPage {
  allocations: Allocation[];
  /** null at the end. */
  nextAfterId: number | null;
}

export interface PageQuery {
  afterId: number;
  limit: number;
  /** Only these clusters; absent: all. */
  clusterIds?: readonly number[];
}

export interface AddressPool {
  clusterId: number;
  prefix: string;
  gateway: string;
  firstAddress: string;
  lastAddress: string;
}
