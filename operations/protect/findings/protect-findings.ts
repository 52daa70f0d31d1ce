import type {
  ProjectionAcknowledgements,
  VulnerabilitiesRequest,
} from '#contracts/admin-api/vulnerabilities.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type {
  FindingFilter,
  FindingListQuery,
  FindingQuery,
  FindingRow,
  FindingSummary,
  FindingTotals,
  FindingTotalsQuery,
  ListedFinding,
  ServerFindingCount,
  UnableRow,
} from '#operations/views/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { FindingKey, FindingSubject } from './finding.ts';
import type { IgnoreFindingInput, IgnoreFindingResult } from './ignore-finding.ts';
import type { FindingStatus } from './store.ts';

/** What a page or a call shows beside the list of findings. */
export interface ServerFindings {
  summary: FindingSummary;
  /** Services that can't be assessed. */
  unable: UnableRow[];
  nowMs: number;
}

export interface ProtectFindings {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** Stores projections; throws `protect_findings.invalid`. One acknowledgement for each, in their order. */
  receive(sender: Sender, request: VulnerabilitiesRequest): Promise<ProjectionAcknowledgements>;
  /** Counts, ages, and what can't be assessed, of the addresses that the server has now. Throws `accounts.forbidden`. */
  read(actor: Actor, subject: FindingSubject): Promise<ServerFindings>;
  /** How the delivery of a server's findings stands (NET-4.10). Throws `accounts.forbidden`. */
  readStatus(actor: Actor, subject: FindingSubject): Promise<FindingStatus>;
  /** Findings, the most severe first. Throws `accounts.forbidden`. */
  list(actor: Actor, subject: FindingSubject, query: FindingQuery): Promise<FindingRow[]>;
  /** How many findings a list has on all its pages. Throws `accounts.forbidden`. */
  count(actor: Actor, subject: FindingSubject, query: FindingFilter): Promise<number>;
  /** By server id: active findings of those of these servers that the actor reaches, where there are some. */
  countOf(actor: Actor, serverIds: readonly number[]): Promise<Map<number, ServerFindingCount>>;
  /**
   * Ignores a finding. Throws `protect_findings.invalid` (details: `fields`), `protect_findings.not_found`,
   * `protect_findings.no_finding`, `protect_findings.views_off`, `accounts.forbidden`. Customers only.
   */
  ignore(actor: Actor, serverId: number, input: IgnoreFindingInput): Promise<IgnoreFindingResult>;
  /** Ends the ignore of a finding; false where it was not ignored. Throws as `ignore`. Customers only. */
  endIgnore(actor: Actor, serverId: number, key: FindingKey): Promise<boolean>;
  /** Findings of all customers, the most severe first. Throws `accounts.forbidden`; staff only. */
  listAll(actor: Actor, query: FindingListQuery): Promise<ListedFinding[]>;
  /** Counts over what `listAll` lists. Throws `accounts.forbidden`; staff only. */
  totalAll(actor: Actor, query: FindingTotalsQuery): Promise<FindingTotals>;
}
