/** Scans of guests for measurements: by the product's command, by nmap as a person types it, and by a sensor with a plan. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { ScanPlan, ScanReport, ScanTarget } from '#contracts/sensor-api/port-scans.ts';
import type { PressureLimits } from '#sensor/scanner/host-pressure.ts';
import type { ScanFindings } from '#sensor/scanner/index.ts';
import { bridgeName, hostAddress, node, type ScanHosts } from './scan-hosts.ts';
import { ended, toolPath } from './tool-link.ts';

const project = fileURLToPath(new URL('../..', import.meta.url));
const monitorProgram = fileURLToPath(new URL('./plan-monitor.ts', import.meta.url));
const sensorProgram = fileURLToPath(new URL('./scanning-sensor.ts', import.meta.url));
const env = { ...process.env, PATH: toolPath };

export interface TimedScan {
  seconds: number;
  /** Seconds by step, in words. */
  steps: Map<string, number>;
  findings: ScanFindings;
}

/** `./svc sensor scan ADDRESS --profile full` on the hypervisor, from its start to its end. */
export async function scanByCommand(hosts: ScanHosts, address: string): Promise<TimedScan> {
  const command = ['svc.ts', 'sensor', 'scan', address, '--profile', 'full', '--json'];
  const startedAt = performance.now();
  const child = start([...hosts.hypervisor, ...node, ...command]);
  const steps = new Map<string, number>();
  let [step, since, text] = ['start', startedAt, ''];
  createInterface({ input: child.stderr! }).on('line', (line) => {
    const next = /^(?:TCP|UDP) (?:discovery|identification)/.exec(line)?.[0] ?? step;
    if (next === step) return;
    steps.set(step, (performance.now() - since) / 1000);
    [step, since] = [next, performance.now()];
  });
  child.stdout!.on('data', (piece) => {
    text += piece;
  });
  await once(child, 'close');
  const end = performance.now();
  steps.set(step, (end - since) / 1000);
  return { seconds: (end - startedAt) / 1000, steps, findings: JSON.parse(text) as ScanFindings };
}

/** Runs these argument lists of nmap one after the other. Resolves with the seconds of each. */
export async function runBareNmap(
  hosts: ScanHosts,
  phases: readonly (readonly string[])[],
): Promise<number[]> {
  const folder = mkdtempSync(join(tmpdir(), 'svc-nmap-'));
  const seconds: number[] = [];
  try {
    for (const phase of phases) {
      const words = phase.map((word) => (word === '/dev/fd/3' ? join(folder, 'result.xml') : word));
      const startedAt = performance.now();
      const child = start([...hosts.hypervisor, 'nmap', ...words]);
      child.stdout!.resume();
      const [code] = await once(child, 'close');
      if (code !== 0) throw new Error(`nmap ended with ${code}`);
      seconds.push((performance.now() - startedAt) / 1000);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  return seconds;
}

/** A plan's target for each address. */
export function planTargets(addresses: readonly string[]): ScanTarget[] {
  return addresses.map((address, i) => ({
    ...{ target_id: `nic-${i + 1}:${address}`, address, interface: bridgeName, source_address: hostAddress },
    ...{ vm_id: i + 1, nic_id: i + 1, inventory_at: new Date().toISOString() },
  }));
}

export interface SensorState {
  atMs: number;
  /** Why nothing starts now. */
  why: string | null;
  /** Why the scans that run are paused. */
  paused: string | null;
  step: string | null;
}

export type PlannedScans = Awaited<ReturnType<typeof startPlannedScans>>;

/** Starts a monitor with this plan and a sensor that scans by it, both on the hypervisor. */
export async function startPlannedScans(
  hosts: ScanHosts,
  plan: Pick<ScanPlan, 'targets' | 'requests'>,
  { cpuPercent, cpuWaitPercent }: PressureLimits,
) {
  const folder = mkdtempSync(join(tmpdir(), 'svc-scanning-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1400m', 'svc-scanning', folder], { env });
  const reports: ScanReport[] = [];
  const states: SensorState[] = [];
  const whole: ScanPlan = { plan_version: 1, revision: 1, withdrawn: [], ...plan };
  const children: ChildProcess[] = [];
  const listen = (argv: readonly string[], take: (line: unknown) => void) => {
    const child = start([...hosts.hypervisor, ...node, ...argv]);
    children.push(child);
    child.stderr!.pipe(process.stderr);
    createInterface({ input: child.stdout! }).on('line', (line) => take(JSON.parse(line)));
    return child;
  };
  const close = async () => {
    for (const child of children) child.stdin!.end();
    await Promise.all(children.map(ended));
    execFileSync('umount', [folder], { env });
    rmSync(folder, { recursive: true, force: true });
  };
  const port = await new Promise<number>((resolve, reject) => {
    const monitor = listen([monitorProgram, JSON.stringify(whole)], (line) => {
      if (line instanceof Object && 'port' in line) resolve(line.port as number);
      else reports.push(line as ScanReport);
    });
    monitor.once('exit', () => reject(new Error('the monitor ended')));
  });
  const limits = [String(cpuPercent), String(cpuWaitPercent)];
  listen([sensorProgram, `http://127.0.0.1:${port}`, folder, ...limits], (line) =>
    states.push(line as SensorState),
  );
  return {
    /** Reports that the monitor took so far. */
    reports /** What the sensor said of itself, every second. */,
    states /** Of the sensor: a file system of its own of 1,400 MiB. */,
    stateDirectory: folder,
    close,
  };
}

function start([tool, ...words]: readonly string[]): ChildProcess {
  return spawn(tool!, words, { env, cwd: project, stdio: ['pipe', 'pipe', 'pipe'] });
}
