/** Numbers of port scans, and of the sensor's traffic. */
import type { Limit } from './number.ts';

const requests = {
  file: 'operations/protect/scans/scan-request.ts',
  test: 'operations/surfaces/admin-api/scan-requests.test.ts',
};
const chosen = {
  file: 'sensor/scanner/choose-scans.ts',
  test: 'sensor/scanner/choose-scans.test.ts',
};
const nmap = {
  file: 'sensor/scanner/nmap-arguments.ts',
  test: 'sensor/scanner/nmap-arguments.test.ts',
};
const groups = { file: 'sensor/scanner/limits/group-files.ts', test: 'sensor/scanner/limits/limits.test.ts' };
const groupsOfVersion2 = { ...groups, file: 'sensor/scanner/limits/version2.ts' };
const pressure = {
  file: 'sensor/scanner/host-pressure.ts',
  test: 'sensor/scanner/host-pressure.test.ts',
};
const ledger = {
  file: 'sensor/scanner/ledger.ts',
  test: 'sensor/scanner/ledger.test.ts',
};
const sender = {
  file: 'sensor/scanner/report-sender.ts',
  test: 'sensor/scanner/report-sender.test.ts',
};
const ofPlans = 'contracts/port-scan/port-scan.test.ts';
const minuteBounds = 'sensor/capture/minute-bounds.test.ts';

export const limitsOfScans: readonly Limit[] = [
  {
    rule: 'NET-8.1',
    text: 'Customer scan cooldown | 10 minutes per device',
    numbers: [
      {
        ...{ words: '10 minutes', what: 'the time between two requests of a server', value: 600, unit: 's' },
        ...{ ...requests, code: 'cooldownSeconds: «600»,' },
      },
    ],
  },
  {
    rule: 'NET-8.1',
    text: 'Public IPs per device scan request | 32',
    numbers: [
      {
        ...{ words: '32', what: 'the number of addresses of a request', value: 32, unit: 'addresses' },
        ...{ ...requests, code: 'addressesOfServer: «32»,' },
      },
    ],
  },
  {
    rule: 'NET-8.1',
    text: 'Pending IP requests per account | 100',
    numbers: [
      {
        ...{ words: '100', what: 'the number of pending addresses of an account', value: 100 },
        ...{ unit: 'addresses', ...requests, code: 'pendingOfAccount: «100»,' },
      },
    ],
  },
  {
    rule: 'NET-8.1',
    text: 'Start window of an unstarted request | 24 hours',
    numbers: [
      {
        ...{ words: '24 hours', what: 'the start window of a request', value: 24, unit: 'hours' },
        ...{ file: 'operations/migrations/0210-create-port-scans.sql', test: requests.test },
        code: "expires_at timestamptz not null default svc_now() + interval '«24» hours'",
      },
    ],
  },
  {
    rule: 'NET-8.2',
    text: 'Scan pools (sensor) | two hourly top-100 TCP/UDP, eight daily full 1-65535, two customer full; at most 12 distinct target IPs at once; common scans eligible one hour after the previous common attempt; common scan 100 ports per protocol, full 65,535',
    numbers: [
      {
        ...{ words: 'two hourly', what: 'the number of hourly scans at once', value: 2, unit: 'scans' },
        ...{ ...chosen, code: 'hourly: «2» }' },
      },
      {
        ...{ words: 'eight daily', what: 'the number of daily scans at once', value: 8, unit: 'scans' },
        ...{ ...chosen, code: 'daily: «8»,' },
      },
      {
        ...{
          words: 'two customer',
          what: 'the number of scans of customers at once',
          value: 2,
          unit: 'scans',
        },
        ...{ ...chosen, code: 'customer: «2», daily' },
      },
      {
        ...{ words: '12 distinct', what: 'the number of addresses at once', value: 12, unit: 'addresses' },
        ...{ ...chosen, code: 'addressesMax = «12»;' },
      },
      {
        ...{ words: 'one hour', what: 'the time between two common scans', value: 3_600_000, unit: 'ms' },
        ...{ ...chosen, code: 'hourMs = «3_600_000»;' },
      },
      {
        ...{ words: '100 ports', what: 'the number of ports of a common scan', value: 100, unit: 'ports' },
        ...{ ...nmap, code: "['--top-ports', '«100»']" },
      },
      {
        ...{ words: '1-65535', what: 'the last port of a full scan', value: 65_535, unit: '(TCP and UDP)' },
        ...{ ...nmap, code: "['-p', '1-«65535»']" },
      },
    ],
    elsewhere: { 'full 65,535': 'the ports 1-65535' },
  },
  {
    rule: 'NET-8.3',
    text: 'Discovery packet rate | average ceiling 8,000 packets/s per process (96,000 across twelve)',
    numbers: [
      {
        ...{ words: '8,000', what: 'the rate at which a held scan goes on', value: 7_840, unit: 'packets/s' },
        ...{ file: 'sensor/scanner/pacing/packet-bucket.ts', code: 'bucketRate = «7840»;' },
        test: 'sensor/scanner/pacing/packet-bucket.test.ts',
      },
      {
        ...{ words: '8,000', what: 'the rate that nmap is given', value: 7_800, unit: 'packets/s' },
        ...{ ...nmap, code: 'packetRateMax = «7800»;' },
      },
    ],
    elsewhere: { '96,000 across twelve': 'the rate of twelve scans' },
  },
  {
    rule: 'NET-8.3',
    text: 'Per-host scan resources | one logical CPU (cpu.max 100000 100000), memory throttle above 384 MiB and hard limit 512 MiB without swap, nice 15, CPU weight 10, idle I/O priority, I/O weight 10, at most 64 tasks, scan output buffer at most 8 MiB; no aggregate cap over hosts',
    numbers: [
      {
        ...{ words: 'cpu.max 100000 100000', what: 'cpu.max of a scan', value: 100_000, unit: 'µs' },
        ...{ ...groups, code: 'cpuPeriodUs = «100_000»;' },
      },
      {
        ...{ words: '384 MiB', what: 'memory.high of a scan', value: 384 * 2 ** 20, unit: 'bytes' },
        ...{ ...groups, code: 'memoryHighBytes = «384 * 1024 * 1024»;' },
      },
      {
        ...{ words: '512 MiB', what: 'memory.max of a scan', value: 512 * 2 ** 20, unit: 'bytes' },
        ...{ ...groups, code: 'memoryMaxBytes = «512 * 1024 * 1024»;' },
      },
      {
        ...{ words: 'nice 15', what: 'the priority of a scan', value: 15, unit: 'by nice' },
        ...{ file: 'sensor/scanner/run-nmap.ts', code: 'nice -n «15» ' },
        test: 'sensor/scanner/run-scan.test.ts',
      },
      {
        ...{ words: 'CPU weight 10', what: 'cpu.weight of a scan', value: 10, unit: 'of 10,000' },
        ...{ ...groupsOfVersion2, code: "'cpu.weight', value: '«10»'" },
      },
      {
        ...{ words: 'I/O weight 10', what: 'io.weight of a scan', value: 10, unit: 'of 10,000' },
        ...{ ...groupsOfVersion2, code: "'io.weight', value: 'default «10»'" },
      },
      {
        ...{ words: '64 tasks', what: 'pids.max of a scan', value: 64, unit: 'tasks' },
        ...{ ...groups, code: 'tasksMax = «64»;' },
      },
      {
        ...{ words: '8 MiB', what: 'the output of a scan that is read', value: 8 * 2 ** 20, unit: 'bytes' },
        ...{ file: 'sensor/scanner/nmap-xml.ts', code: 'outputBytesMax = «8 * 1024 * 1024»;' },
        test: 'sensor/scanner/run-scan.test.ts',
      },
    ],
    elsewhere: { 'one logical CPU': 'cpu.max' },
  },
  {
    rule: 'NET-8.4',
    text: 'Host pressure (sampled every 5 s) | defer and stop probes at CPU >= 85%, available memory below the larger of 1 GiB or 10% of RAM, or under 1 GiB free on the state filesystem; with PSI, CPU some avg10 >= 10% or memory full avg10 >= 1%; resume after 30 s healthy; gaps over 10 s reset recovery',
    numbers: [
      {
        ...{ words: 'every 5 s', what: 'the time between two measurements', value: 5_000, unit: 'ms' },
        ...{ ...pressure, code: 'sampleEveryMs = «5000»;', test: 'sensor/scanner/scan-service.test.ts' },
      },
      {
        ...{ words: '85%', what: 'the use of the CPUs that pauses scans', value: 85, unit: '%' },
        ...{ ...pressure, file: 'sensor/config.ts', code: "'SVC_SENSOR_SCAN_CPU_PERCENT',\n    «85»," },
      },
      {
        ...{ words: 'larger of 1 GiB', what: 'the available memory below which scans pause', value: 2 ** 30 },
        ...{ unit: 'bytes', ...pressure, code: 'memoryAvailableMin = «1024 ** 3»;' },
      },
      {
        ...{ words: '10% of RAM', what: 'the part of the memory below which scans pause', value: 0.1 },
        ...{ unit: 'of all', ...pressure, code: 'memoryPartMin = «0.1»;' },
      },
      {
        ...{ words: 'under 1 GiB free', what: 'the free disk below which scans pause', value: 2 ** 30 },
        ...{ unit: 'bytes', ...pressure, code: 'diskFreeMin = «1024 ** 3»;' },
      },
      {
        ...{ words: 'avg10 >= 10%', what: 'the wait for a CPU that pauses scans', value: 10, unit: '%' },
        ...{ ...pressure, file: 'sensor/config.ts', code: "'SVC_SENSOR_SCAN_CPU_WAIT_PERCENT',\n    «10»," },
      },
      {
        ...{ words: 'avg10 >= 1%', what: 'the wait for memory that pauses scans', value: 1, unit: '%' },
        ...{ ...pressure, code: 'memoryFullPercent = «1»;' },
      },
      {
        ...{ words: '30 s healthy', what: 'the healthy time before scans go on', value: 30_000, unit: 'ms' },
        ...{ ...pressure, code: 'healthyMs = «30_000»;' },
      },
      {
        ...{
          words: 'over 10 s',
          what: 'the gap after which that time begins anew',
          value: 10_000,
          unit: 'ms',
        },
        ...{ ...pressure, code: 'gapMaxMs = «10_000»;' },
      },
    ],
  },
  {
    rule: 'NET-8.5',
    text: 'Sensor plan fetch | one at a time, 15-second timeout; result upload waits up to 45 s for a receipt',
    numbers: [
      {
        ...{ words: '15-second', what: 'the time for a scan plan', value: 15_000, unit: 'ms' },
        ...{ file: 'sensor/scanner/scan-service.ts', code: 'fetchTimeoutMs = «15_000»;' },
        test: 'sensor/scanner/scan-service.test.ts',
      },
      {
        ...{ words: '15-second', what: 'the time for a plan', value: 15_000, unit: 'ms' },
        ...{ file: 'sensor/plan/index.ts', code: 'fetchTimeoutMs = «15_000»;' },
        test: 'sensor/plan/plan.test.ts',
      },
      {
        ...{ words: '45 s', what: 'the time for the receipt of a scan', value: 45_000, unit: 'ms' },
        ...{ ...sender, code: 'receiptTimeoutMs = «45_000»;' },
      },
      {
        ...{ words: '45 s', what: 'the time for the receipt of an upload', value: 45_000, unit: 'ms' },
        ...{ file: 'sensor/uplink/index.ts', code: 'answerTimeoutMs = «45_000»;' },
        test: 'sensor/uplink/uplink.test.ts',
      },
    ],
    elsewhere: { 'one at a time': 'a loop that waits for each' },
  },
  {
    rule: 'NET-8.5',
    text: 'Sensor scan store | pending JSON payloads 128 MiB; main database 160 MiB page limit; retained WAL 4 MiB; withdrawn entries expire after 7 days; table cap 8,192 records; idle polling at most every 5 s; plans and open observations at most 4096 entries each',
    numbers: [
      {
        ...{ words: '128 MiB', what: 'the size of the pending reports', value: 128 * 2 ** 20, unit: 'bytes' },
        ...{ ...ledger, code: 'pendingBytesMax = «128 * 1024 * 1024»;' },
      },
      {
        ...{ words: '160 MiB', what: 'the size of the file', value: 160 * 2 ** 20, unit: 'bytes' },
        ...{ ...ledger, code: 'fileBytesMax = «160 * 1024 * 1024»;' },
      },
      {
        ...{ words: '4 MiB', what: 'the size of the log that is kept', value: 4 * 2 ** 20, unit: 'bytes' },
        ...{ ...ledger, code: 'walBytesMax = «4 * 1024 * 1024»;' },
      },
      {
        ...{ words: '7 days', what: 'the time for which ids are kept', value: 7 * 86_400_000, unit: 'ms' },
        ...{ ...ledger, code: 'keptMs = «7 * 86_400_000»;' },
      },
      {
        ...{ words: '8,192 records', what: 'the number of rows of a table', value: 8_192, unit: 'rows' },
        ...{ ...ledger, code: 'rowsMax = «8192»;' },
      },
      {
        ...{ words: 'every 5 s', what: 'the time between two looks for reports', value: 5_000, unit: 'ms' },
        ...{ ...sender, code: 'idleMs = «5000»;' },
      },
      {
        ...{ words: 'every 5 s', what: 'the least time between two plans', value: 5_000, unit: 'ms' },
        ...{ file: 'sensor/scanner/scan-service.ts', code: 'planSoonestMs = «5000»;' },
        test: 'sensor/scanner/plan-turns.test.ts',
      },
      {
        ...{ words: '4096 entries', what: 'the number of targets of a plan', value: 4_096, unit: 'targets' },
        ...{ file: 'contracts/sensor-api/port-scans.ts', code: 'scanTargetsMax = «4096»;', test: ofPlans },
      },
      {
        ...{
          words: '4096 entries',
          what: 'the number of open ports of a report',
          value: 4_096,
          unit: 'ports',
        },
        ...{ file: 'contracts/port-scan/index.ts', code: 'scanServicesMax = «4096»;', test: ofPlans },
      },
    ],
  },
  {
    rule: 'NET-8.6',
    text: 'Application tracker | 32,768 flows per capture, 131,072 per process, 4 KiB client data per flow, 32 MiB process budget, 4,096 usage keys per minute',
    numbers: [
      {
        ...{ words: '32,768 flows', what: 'the number of flows of a capture', value: 32_768, unit: 'flows' },
        ...{
          file: 'sensor/capture/minute-capture.ts',
          code: 'flowsOfCapture = «32_768»;',
          test: minuteBounds,
        },
      },
      {
        ...{ words: '131,072 per process', what: 'the number of full captures of a process', value: 4 },
        ...{ unit: 'captures', file: 'sensor/collection/index.ts', code: 'capturesMax = «4»;' },
        test: minuteBounds,
      },
      {
        ...{ words: '4 KiB', what: 'the data of a client that is kept', value: 4_096, unit: 'bytes' },
        ...{ file: 'sensor/capture/names/stream-buffers.ts', code: 'bufferBytes = «4096»;' },
        test: 'sensor/capture/names/resegmentation.test.ts',
      },
      {
        ...{ words: '4,096 usage keys', what: 'the number of rows of a capture and minute', value: 4_096 },
        ...{ unit: 'rows', file: 'sensor/capture/minute-capture.ts', code: 'reportedRowsMax = «4096»;' },
        test: minuteBounds,
      },
      {
        ...{ words: '4,096 usage keys', what: 'the number of rows of an uploaded minute', value: 4_096 },
        ...{ unit: 'rows', file: 'contracts/sensor-api/telemetry.ts', code: 'usageRowsMax = «4096»;' },
        test: 'contracts/sensor-api/telemetry-codec.test.ts',
      },
    ],
    elsewhere: { '32 MiB process budget': 'the sum of all tables, which minute-bounds.test.ts measures' },
  },
];
