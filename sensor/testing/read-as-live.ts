/**
 * Reads a capture file like a live capture: every frame through the engine of a minute capture with its bounded tables,
 * every minute closed. Benchmarks start it as a process.
 *
 * usage: sh tools/with-node sensor/testing/read-as-live.ts FILE …    (one after the other; prints a list of their
 * counters as JSON)
 */
import { readFileSync } from 'node:fs';
import { createCapture } from '#sensor/capture/index.ts';
import { openCaptureFile } from '#sensor/capture-files/index.ts';

/** Counters, and the cost of the reading. */
export interface LiveReading {
  packets: number;
  usageRows: number;
  names: number;
  /** Rows of the last minute with a name spoken on the connection. */
  namedAtEnd: number;
  /** Processor time from the first frame to the last report. */
  cpuMs: number;
  rssMiB: number;
}

/** Reads the whole file. */
export function readAsLive(path: string): LiveReading {
  const file = openCaptureFile(path);
  const capture = createCapture({
    name: 'bench0',
    role: 'uplink',
    linkType: file.linkTypes[0] ?? 1,
    registrableDomain: (host) => host.split('.').slice(-2).join('.'),
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
  });
  const started = process.cpuUsage();
  const reading: LiveReading = { packets: 0, usageRows: 0, names: 0, namedAtEnd: 0, cpuMs: 0, rssMiB: 0 };
  const names = new Set<string>();
  const take = (isLast: boolean) => {
    const nowMs = file.seconds * 1000;
    for (const report of isLast ? capture.closeAll(nowMs) : capture.closeMinutes(nowMs)) {
      reading.packets += report.totals.packets;
      reading.usageRows += report.usage.length;
      reading.namedAtEnd = report.usage.filter((row) => row.evidence === 'tls_sni').length;
      for (const row of report.usage) if (row.evidence !== 'none') names.add(row.name);
    }
  };
  let minute = 0;
  while (file.next()) {
    capture.observe(
      file.bytes,
      file.offset,
      file.capturedLength,
      file.wireLength,
      file.seconds,
      file.nanoseconds,
      -1,
    );
    if (file.seconds >= minute + 60) {
      minute = file.seconds;
      take(false);
    }
  }
  take(true);
  const cpu = process.cpuUsage(started);
  reading.names = names.size;
  reading.cpuMs = (cpu.user + cpu.system) / 1000;
  // Not `maxRSS`, which includes the maximum of the parent process.
  const status = readFileSync('/proc/self/status', 'utf8');
  reading.rssMiB = Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
  return reading;
}

if (import.meta.main) {
  const paths = process.argv.slice(2);
  if (paths.length === 0) {
    console.error('usage: sh tools/with-node sensor/testing/read-as-live.ts FILE …');
    process.exit(2);
  }
  console.log(JSON.stringify(paths.map(readAsLive)));
}
