/** What `sensor check` says of the sensor that runs on this host. */
import { type Finding, finding } from '#sensor/host-check/index.ts';
import { describeEvidence, type SensorStatus } from '#sensor/local-status/index.ts';

/** State of the sensor that runs here. */
export function findRunning(status: SensorStatus | null): Finding[] {
  if (!status)
    return [
      finding('info', 'running', 'No sensor runs here with this state directory, or you may not access it.'),
    ];
  const { pendingUploads, roomMinutes } = status.spool;
  const room =
    roomMinutes === null
      ? ''
      : `; the spool has room for ${(roomMinutes / 60).toFixed(1)} hours at the present rate`;
  const since = new Date(status.startedAtMs).toISOString().slice(0, 16);
  return [
    finding(
      'ok',
      'running',
      `Version ${status.version} since ${since}Z, ${pendingUploads} uploads wait${room}.`,
    ),
    ...scanFindings(status),
    ...evidenceFindings(status),
    ...filterFindings(status),
    ...(status.incidents ?? []).map((one) =>
      finding(
        'info',
        `running ${one.capture}`,
        `${one.class} ${one.direction} on ${one.target} since ${new Date(one.startedAtMs).toISOString().slice(0, 19)}Z${one.drill ? ' (drill)' : ''}.`,
      ),
    ),
    ...status.captures.map((capture) => {
      const subject = `running ${capture.name}`;
      if (!capture.isListening)
        return finding('bad', subject, `Does not listen: ${capture.why ?? 'no plan yet'}`);
      const threads = capture.members > 1 ? ` with ${capture.members} threads` : '';
      return finding(
        capture.method === 'tcpdump' ? 'warn' : 'ok',
        subject,
        `Listens by ${capture.method}${threads}${capture.why ? `: ${capture.why}` : ''}${describeCounting(capture)}.`,
      );
    }),
  ];
}

/** Where totals are counted. A sensor of an older version says nothing of it. */
function describeCounting({ whyNotKernel }: SensorStatus['captures'][number]): string {
  if (whyNotKernel === undefined) return '';
  return whyNotKernel === null
    ? '; totals are counted in the kernel'
    : `; totals are counted frame by frame: ${whyNotKernel}`;
}

function filterFindings({ filters = [] }: SensorStatus): Finding[] {
  return filters.map(({ capture, rules, dropsPps, why }) =>
    finding(
      'info',
      `running ${capture}`,
      why === null
        ? `The filter has ${rules} rules and drops ${dropsPps} packets/s.`
        : `Nothing can be dropped: ${why}.`,
    ),
  );
}

/** Port scans of the sensor that runs here. A sensor of an older version says nothing of them. */
function scanFindings({ scans }: SensorStatus): Finding[] {
  if (scans === undefined) return [];
  const subject = 'running scans';
  if (scans === null)
    return [finding('info', subject, 'Port scans are off: SVC_SENSOR_PORT_SCANS, or a replay.')];
  const { why, scans: running, pendingReports } = scans;
  const count = `${running.length} run, ${pendingReports} reports wait`;
  return [
    finding(
      why === null ? 'ok' : 'info',
      subject,
      why === null ? `${count}.` : `No scan starts: ${why}; ${count}.`,
    ),
  ];
}

/** Capture files of attacks. A sensor of an older version says nothing of them. */
function evidenceFindings({ evidence }: SensorStatus): Finding[] {
  if (evidence === undefined) return [];
  const { takesEvidence, waitingFiles, dropped, why } = evidence;
  const subject = 'running evidence';
  const waits = `${describeEvidence(evidence)}.`;
  if (dropped > 0) {
    const text = `${waits} ${dropped} were dropped since the start: too many wait for the monitor.`;
    return [finding('warn', subject, text)];
  }
  if (why !== null && waitingFiles > 0)
    return [finding('warn', subject, `${waits} They do not reach the monitor: ${why}`)];
  if (takesEvidence || waitingFiles > 0) return [finding('ok', subject, waits)];
  return [finding('info', subject, 'The monitor takes no capture files of attacks.')];
}
