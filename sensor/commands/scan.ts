/**
 * `./svc sensor scan ADDRESS`: one port scan by hand. Exit code 0: complete, 1: not scanned, 2: wrong arguments, 3: partial.
 */
import { randomUUID } from 'node:crypto';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { describeNote, type ScanProfile } from '#contracts/port-scan/index.ts';
import {
  createPacer,
  destinationFault,
  findNmap,
  findRoute,
  findScanLimits,
  isOwnAddress,
  type RunningScan,
  type ScanFindings,
  type ScanTask,
  startScan,
} from '#sensor/scanner/index.ts';

const sayEveryMs = { terminal: 1000, other: 10_000 };
const stepNames = {
  tcp_discovery: 'TCP discovery',
  udp_discovery: 'UDP discovery',
  tcp_identification: 'TCP identification',
  udp_identification: 'UDP identification',
};
export interface ScanOptions {
  profile: ScanProfile;
  json?: boolean;
}

/** Scans and prints. Resolves with the exit code. */
export async function scan(text: string, options: ScanOptions): Promise<number> {
  const address = canonicalAddress(text);
  if (address === null) {
    say(`"${text}" is not an IP address: give one address, such as 192.0.2.7`);
    return 2;
  }
  const pacer = createPacer((why) => say(`packets can not be counted any more: ${why}`));
  try {
    const { running, task } = await begin(address, options.profile, pacer);
    const findings = await follow(running);
    if (findings.packets === 0 && running.fault() !== null && findings.services.length === 0)
      throw new CodedError('scan.failed', `Nothing was scanned: ${running.fault()}.`);
    process.stdout.write(
      options.json
        ? `${JSON.stringify({ scan_id: task.scanId, address, ...findings, fault: running.fault() }, null, 2)}\n`
        : render(task, findings, running.fault()),
    );
    return findings.state === 'complete' ? 0 : 3;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    say(error.message);
    return 1;
  } finally {
    await pacer.close();
  }
}

async function begin(
  address: string,
  profile: ScanOptions['profile'],
  pacer: ReturnType<typeof createPacer>,
): Promise<{ running: RunningScan; task: ScanTask }> {
  const program = findNmap();
  if (program === null) throw new CodedError('scan.no_nmap', 'nmap is not installed: apt-get install nmap.');
  if (isOwnAddress(address))
    throw new CodedError('scan.own_address', `${address} is this host's own address.`);
  const task = { scanId: randomUUID(), address, profile, ...(await findRoute(address)) };
  const fault = destinationFault(task);
  if (fault !== null) throw new CodedError('scan.destination', `${address} can not be scanned: ${fault}.`);
  const limits = findScanLimits();
  if (typeof limits === 'string') throw new CodedError('scan.no_limits', `Nothing is scanned: ${limits}`);
  say(`scanning ${address} by ${task.interfaceName} from ${task.sourceAddress}`);
  return { task, running: startScan({ clock: systemClock, limits, pacer, program }, task) };
}

/** Says how far the scan is until it ends. */
async function follow(running: RunningScan): Promise<ScanFindings> {
  let interruptions = 0;
  const interrupt = () => {
    interruptions += 1;
    // A second one leaves at once; the kernel ends nmap with this process.
    if (interruptions > 1) process.exit(130);
    running.end('interrupted');
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  const isTerminal = process.stderr.isTTY === true;
  let lastStep = '';
  const tell = () => {
    const { step, percent, open, packets } = running.progress();
    const line = `${stepNames[step]} ${Math.floor(percent)} %, ${open.length} open, ${packets} packets sent`;
    process.stderr.write(isTerminal ? `\r\x1b[K${line}` : `${line}\n`);
    lastStep = step;
  };
  const timer = setInterval(tell, isTerminal ? sayEveryMs.terminal : sayEveryMs.other);
  const steps = setInterval(() => running.progress().step !== lastStep && tell(), 200);
  try {
    return await running.findings;
  } finally {
    clearInterval(timer);
    clearInterval(steps);
    if (isTerminal) process.stderr.write('\r\x1b[K');
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}

function render({ address, profile }: ScanTask, findings: ScanFindings, fault: string | null): string {
  const seconds = (Date.parse(findings.finished_at) - Date.parse(findings.started_at)) / 1000;
  const asked = profile === 'full' ? 'all 65,535 ports' : 'the 100 most used ports';
  const head = `${address}: ${asked} of TCP and UDP, ${findings.state}, ${seconds.toFixed(1)} s, ${findings.packets} packets`;
  const rows = findings.services.map((one) => {
    const product = [one.product, one.version, one.extra_info && `(${one.extra_info})`]
      .filter(Boolean)
      .join(' ');
    const name = one.service === null ? 'unknown' : one.method === 'probed' ? one.service : `${one.service}?`;
    const tunnel = one.tunnel === null ? '' : `${one.tunnel}/`;
    return `  ${`${one.port}/${one.transport}`.padEnd(10)}  ${`${tunnel}${name}`.padEnd(16)}  ${product}`.trimEnd();
  });
  const phases = findings.phases.map(
    (one) =>
      `  ${one.transport.toUpperCase()}: ${one.ports_answered} answered, ${one.filtered} refused by a firewall, ${one.silent} silent${one.finished ? '' : ', not finished'}`,
  );
  const notes = [
    ...findings.notes.map((note) => `Note: ${describeNote(note)}.`),
    ...(fault === null ? [] : [`Fault: ${fault}.`]),
  ];
  const open = rows.length === 0 ? ['  No open port was found.'] : rows;
  return `${[head, ...open, ...phases, ...notes.map((note) => `  ${note}`)].join('\n')}\n`;
}

function say(text: string): void {
  process.stderr.write(`svc: ${text}\n`);
}
