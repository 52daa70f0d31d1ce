/** What is set about the protection of a site, as it is stored. */
import type { ThresholdChoices } from './thresholds.ts';

/** Bounds of one site. A group of the plan may have more prefixes, and each server with its own thresholds may need one. */
export const groupsMax = 256;
export const groupPrefixesMax = 256;
export const serversMax = 4096;
export const groupNameMax = 80;

/** Who changed it last, and which version of it a form was filled in with. */
export interface Revised {
  /** From 1; 0: nothing is set yet. */
  revision: number;
  /** Unix milliseconds; null: nothing is set yet. */
  changedAtMs: number | null;
  changedBy: string | null;
}

export interface SiteSettings extends Revised {
  thresholds: ThresholdChoices;
  /** Canonical prefixes, protected beside the targets. */
  additionalCidrs: string[];
}

export interface HostGroup extends Revised {
  id: number;
  name: string;
  /** Canonical, at least one. */
  prefixes: string[];
  thresholds: ThresholdChoices;
}

/** A server of the inventory, or one address. */
export type ServerKey = { clusterId: number; serverId: number } | { address: string };

export interface ServerSettings extends Revised {
  id: number;
  /** Of a server; null for an address. */
  clusterId: number | null;
  serverId: number | null;
  /** Canonical; null for a server. */
  address: string | null;
  thresholds: ThresholdChoices;
}

/** Everything of one site. */
export interface Settings {
  site: SiteSettings;
  /** By name. */
  groups: readonly HostGroup[];
  servers: readonly ServerSettings[];
}
