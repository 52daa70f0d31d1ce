/** A record of the vulnerability database, as far as it is kept. */
import type { FindingSeverity } from '#contracts/findings.ts';

export interface Severity {
  /** Version of CVSS. */
  version: '2.0' | '3.0' | '3.1' | '4.0';
  score: number;
  rating: FindingSeverity;
  /** How the score came about, such as `CVSS:3.1/AV:N/…`; records of an earlier version of this program have none. */
  vector?: string;
}

/** One criterion: a product (CPE 2.3) and, where it names no version itself, a range of them. */
export interface Criterion {
  cpe: string;
  /** False for what the vulnerable product runs on or together with. */
  isVulnerable: boolean;
  startIncluding?: string;
  startExcluding?: string;
  endIncluding?: string;
  endExcluding?: string;
}

/** What must be true of a server: all of it or any of it. */
export interface Condition {
  operator: 'AND' | 'OR';
  isNegated: boolean;
  parts: readonly (Condition | Criterion)[];
}

export interface Advisory {
  /** Such as CVE-2024-6387. */
  cve: string;
  /** As the database says, such as `Analyzed`, `Modified`, `Deferred`. */
  status: string;
  summary: string;
  publishedAt: string;
  modifiedAt: string;
  severity: Severity | null;
  /** In CISA's catalog of known exploited vulnerabilities. */
  isKnownExploited: boolean;
  isDisputed: boolean;
  /** Alternatives; empty while the database has not analysed the record. */
  configurations: readonly Condition[];
}
