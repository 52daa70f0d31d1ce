import { accessSync, constants, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { CaptureSpec } from '#sensor/collection/index.ts';
import { loadFilter, loadKernel } from '#sensor/kernel/index.ts';
import { loadRing, openSource, type PacketSource } from '#sensor/packet-source/index.ts';

/** Enough for a trial; the memory of the real ring is checked separately. */
const trialRingMiB = 2;

/** Tries to capture on an interface like the sensor, and reports the result. */
export async function checkCapture(spec: CaptureSpec, hasFilter: boolean): Promise<Finding[]> {
  const { source } = spec;
  const subject = `capture ${spec.name}`;
  if (source.kind === 'replay') {
    return [
      finding('warn', subject, `A recorded capture is replayed: ${source.file}. This is not live traffic.`),
    ];
  }
  const findings = [...linkState(source.interfaceName), await checkCounting(subject, source.interfaceName)];
  if (spec.role === 'uplink') findings.push(await checkFilter(subject, source.interfaceName, hasFilter));
  const ring = await loadRing();
  if (typeof ring === 'string') {
    findings.push(
      finding(
        'warn',
        subject,
        `The packet ring can not be used; tcpdump replaces it at several times the cost: ${ring}.`,
      ),
    );
  }
  const wantsFanout = (spec.members ?? 1) > 1;
  const opened: PacketSource[] = [];
  try {
    const first = await openSource({ ...source, ringMiB: trialRingMiB, fanout: wantsFanout ? 'new' : null });
    opened.push(first.source);
    findings.push(methodFinding(subject, first.source, first.fallback));
    if (wantsFanout) {
      const group = first.source.fanoutGroup;
      if (group === null)
        findings.push(finding('warn', subject, 'Several threads need the packet ring; one thread is used.'));
      else {
        opened.push((await openSource({ ...source, ringMiB: trialRingMiB, fanout: group })).source);
        findings.push(
          finding(
            'ok',
            subject,
            `${spec.members} threads can share the interface; each flow stays on one thread.`,
          ),
        );
      }
    }
  } catch (error) {
    const code = error instanceof CodedError ? error.code : '';
    findings.push(
      finding(
        'bad',
        subject,
        `${describeError(error)}${code === 'capture.not_permitted' ? ' See "capability".' : ''}`,
      ),
    );
  } finally {
    for (const one of opened) one.close();
  }
  return findings;
}

/** Whether the kernel counts; names come from the frames in any case. */
async function checkCounting(subject: string, interfaceName: string): Promise<Finding> {
  try {
    const { counter } = (await loadKernel()).openCounter(interfaceName);
    counter.close();
    return finding(
      'ok',
      subject,
      'Totals are counted in the kernel, without loss and also while no sensor runs.',
    );
  } catch (error) {
    const text = `Totals are counted frame by frame, not in the kernel: ${describeError(error)} Root changes that: attach.`;
    return finding('info', subject, text);
  }
}

/** Whether rules of the monitor can drop attacks here. */
async function checkFilter(subject: string, interfaceName: string, isWanted: boolean): Promise<Finding> {
  if (!isWanted)
    return finding(
      'info',
      subject,
      'Attacks are not dropped here: SVC_SENSOR_FILTER=1 and attach change that.',
    );
  try {
    const { filter } = (await loadFilter()).openFilter(interfaceName);
    filter.close();
    return finding(
      'ok',
      subject,
      'The filter is attached: rules of the monitor can drop attacks on servers, and by them, here.',
    );
  } catch (error) {
    return finding(
      'warn',
      subject,
      `Attacks can not be dropped here: ${describeError(error)} Root changes that: attach.`,
    );
  }
}

function methodFinding(subject: string, source: PacketSource, fallback: string | null): Finding {
  if (source.method === 'tcpdump') {
    return finding(
      'warn',
      subject,
      `Works through tcpdump, at several times the cost: ${fallback}. Packets merged by offload can not be counted.`,
    );
  }
  if (!source.countsSegments) {
    const cure = 'disable offload if packet rates matter: ethtool -K INTERFACE gro off gso off tso off';
    return finding(
      'warn',
      subject,
      `The ring works, but this kernel does not report how offload merged packets: byte counts are right, packet counts too low; ${cure}.`,
    );
  }
  return finding(
    'ok',
    subject,
    'The packet ring works, and merged packets are counted by their segments, so offload may stay enabled.',
  );
}

function linkState(name: string): Finding[] {
  const read = (file: string) => readFileSync(`/sys/class/net/${name}/${file}`, 'utf8').trim();
  try {
    const isUp = (Number(read('flags')) & 1) !== 0;
    if (!isUp)
      return [
        finding(
          'warn',
          `capture ${name}`,
          `The interface is down and has no traffic until "ip link set ${name} up".`,
        ),
      ];
    return [
      finding('info', `capture ${name}`, `The interface is up, MTU ${read('mtu')}, MAC ${read('address')}.`),
    ];
  } catch {
    return [];
  }
}

/** Programs that the sensor uses. */
export function checkPrograms(): Finding[] {
  const tcpdump = findProgram('tcpdump');
  return [
    tcpdump
      ? finding('ok', 'tcpdump', `Found as ${tcpdump}; it can replace the packet ring.`)
      : finding(
          'info',
          'tcpdump',
          'Not found. It is needed only where the packet ring does not work: apt-get install tcpdump.',
        ),
  ];
}

/** Path of a program, or null. Also searches sbin, because a service has a shorter PATH than a shell. */
function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  for (const folder of folders) {
    if (folder === '') continue;
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Not in this directory.
    }
  }
  return null;
}

/** `bad`: the sensor can not work. `warn`: it works worse or at a higher cost. `info`: worth knowing. */
export type FindingState = 'ok' | 'info' | 'warn' | 'bad';

export interface Finding {
  subject: string;
  state: FindingState;
  /** A sentence; for a problem it includes the fix. */
  text: string;
}

/** Creates a finding. */
export function finding(state: FindingState, subject: string, text: string): Finding {
  return { state, subject, text };
}
