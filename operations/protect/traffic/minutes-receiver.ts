import {
  minutesContract,
  type TelemetryReceipts,
  type TelemetryRequest,
} from '#contracts/admin-api/schemas.ts';
import { defineReceiver, type FeedReceiver } from '#operations/feeds/index.ts';
import type { ProtectTraffic } from './protect-traffic.ts';

/** The receiver of the minute feed (NET-2.4). */
export function createMinutesReceiver(traffic: Pick<ProtectTraffic, 'receive'>): FeedReceiver {
  return defineReceiver<TelemetryRequest, TelemetryReceipts>({
    contract: minutesContract,
    hint: 'Read allocation targets and deliver minute telemetry.',
    readsTargets: true,
    invalidCode: 'protect_traffic.invalid',
    receive: (sender, request) => traffic.receive(sender, request),
  });
}
