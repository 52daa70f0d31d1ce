import { type LiveReceipts, type LiveRequest, liveContract } from '#contracts/admin-api/live.ts';
import { defineReceiver, type FeedReceiver } from '#operations/feeds/index.ts';
import type { ProtectLive } from './protect-live.ts';

/** The receiver of the live feed (NET-2.5). */
export function createLiveReceiver(live: Pick<ProtectLive, 'receive'>): FeedReceiver {
  return defineReceiver<LiveRequest, LiveReceipts>({
    contract: liveContract,
    hint: 'Read allocation targets and deliver live traffic in steps of ten seconds.',
    readsTargets: true,
    invalidCode: 'protect_live.invalid',
    receive: (sender, request) => live.receive(sender, request),
  });
}
