import type { LiveReceipts, LiveRequest } from '#contracts/admin-api/live.ts';
import type { Actor } from '#operations/accounts/index.ts';
import type { Sender } from '#operations/feeds/index.ts';
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import type { TrafficSubject } from '../traffic/index.ts';
import type { LiveRow, LiveStatus } from './store.ts';

export interface ProtectLive {
  /** What it does beside the calls. */
  readonly work: FeatureWork;
  /** Stores what belongs to a generation; throws `protect_live.invalid`. One receipt a target, in their order. */
  receive(scope: Sender, request: LiveRequest): Promise<LiveReceipts>;
  /** Buckets of a server that began at or after this time, in time order. */
  read(actor: Actor, subject: TrafficSubject, fromMs: number): Promise<LiveRow[]>;
  /** How the delivery of a server's live traffic stands (NET-4.10). */
  readStatus(actor: Actor, subject: TrafficSubject): Promise<LiveStatus>;
}
