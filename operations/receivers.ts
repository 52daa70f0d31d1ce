import type { FeedReceiver } from '#operations/feeds/index.ts';
import { createMinutesReceiver, type ProtectTraffic } from '#operations/protect/index.ts';

/** The receivers of operations, in the order of discovery and of the form; a new one is added here. */
export function createReceivers(features: { protectTraffic: ProtectTraffic }): FeedReceiver[] {
  return [createMinutesReceiver(features.protectTraffic)];
}
