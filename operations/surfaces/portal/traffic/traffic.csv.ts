import type { MinuteRow } from '#operations/protect/index.ts';
import { tableCsv } from '#service-kit/pages/index.ts';

/** Exact values; an empty cell was not observed. */
export function minutesCsv(minutes: readonly MinuteRow[]): string {
  return tableCsv(
    [
      { field: 'timestamp', value: (row) => row.minute.toISOString() },
      { field: 'address', value: (row) => row.address },
      { field: 'inbound_bytes', value: (row) => row.inboundBytes },
      { field: 'outbound_bytes', value: (row) => row.outboundBytes },
      { field: 'packets_per_second', value: (row) => row.pps },
      { field: 'coverage', value: (row) => row.coverage },
      { field: 'expected_bps', value: (row) => row.expectedBps },
      { field: 'expected_pps', value: (row) => row.expectedPps },
      { field: 'attack_bps', value: (row) => row.ddosBps },
      { field: 'attack_pps', value: (row) => row.ddosPps },
      { field: 'reason', value: (row) => row.reason },
      { field: 'provider_scan_inbound_bytes', value: (row) => row.ownScanInboundBytes },
      { field: 'provider_scan_outbound_bytes', value: (row) => row.ownScanOutboundBytes },
    ],
    minutes,
  );
}
