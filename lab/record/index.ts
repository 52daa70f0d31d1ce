/**
 * Makes the recording that stands in for a live network where there is no root.
 *
 * A world of its own runs for some minutes, `tcpdump` listens on its uplink, and whole UTC minutes of that are cut out:
 * the traffic rests around each minute, so no conversation is cut in two and the recording can be repeated end to end.
 * Beside the capture lie its guests, in the form that the simulated hypervisor reads, and what nftables counted.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { createLab, type GuestInput, type Lab, type TruthRow } from '../index.ts';
import { runTool, toolPath } from '../world/run-tool.ts';
import { trimCapture } from './trim-capture.ts';

export interface RecordingOptions {
  minutes: number;
  /** The capture file; guests are written beside it as `.json`, the counted minutes as `.truth.json`. */
  file: string;
  reporter: Reporter;
}

/** The first addresses and MACs that a hypervisor of the demo world hands out. */
const guests: readonly GuestInput[] = ['web', 'shop', 'mail', 'build'].map((role, i) => ({
  name: `${role}-1`,
  mac: `52:54:00:5e:10:${(0x10 + i).toString(16)}`,
  addresses: [{ address: `203.0.113.${10 + i}` }, { address: `2001:db8:113::${10 + i}` }],
}));

/** Slower than live worlds, so that some minutes of four guests stay small. */
const outboundPerSecond = 0.25;
const inboundPerSecond = 0.12;
const warmUpMs = 5_000;

/** Records; takes `minutes` and up to one more. Needs root, and Debian's tcpdump. */
export async function recordTraffic(options: RecordingOptions): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-record-'));
  const lab = createLab({ dataDir, reporter: options.reporter, outboundPerSecond, inboundPerSecond });
  try {
    await runTool(['tcpdump', '--version']);
    await lab.start();
    for (const guest of guests) await lab.put(guest);
    await record(lab, join(dataDir, 'whole.pcap'), options);
  } finally {
    await lab.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function record(lab: Lab, wholeFile: string, options: RecordingOptions): Promise<void> {
  const { reporter, minutes } = options;
  const argv = ['tcpdump', '-i', lab.facts.uplink, '-s', '0', '-U', '-Z', 'root', '-w', wholeFile];
  const [tool, ...rest] = lab.inHypervisor(argv) as [string, ...string[]];
  const capture = spawn(tool, rest, { env: { ...process.env, PATH: toolPath }, stdio: 'ignore' });
  const fromMs = (Math.floor((systemClock.nowMs() + warmUpMs) / 60_000) + 1) * 60_000;
  const toMs = fromMs + minutes * 60_000;
  reporter.info('recording', { from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() });
  // Two seconds past the end the truth ledger has the last minute too.
  await systemClock.wait(toMs + 2_000 - systemClock.nowMs());
  const ended = once(capture, 'exit');
  capture.kill('SIGTERM');
  await ended;

  const truth = readTruth(lab.facts.truth_ledger).filter((row) => {
    return row.minute * 1000 >= fromMs && row.minute * 1000 < toMs;
  });
  if (truth.length !== minutes * 2 * guests.length || truth.some((row) => !row.exact)) {
    throw new CodedError(
      'lab.recording_unclear',
      'The traffic did not rest around every minute; record again',
    );
  }
  const trimmed = trimCapture(readFileSync(wholeFile), { fromMs, toMs });
  mkdirSync(dirname(options.file), { recursive: true });
  writeFileSync(options.file, trimmed.file);
  writeJson(
    options.file.replace(/(\.pcap)?$/, '.json'),
    guests.map((guest) => ({ ...guest, addresses: guest.addresses?.map((entry) => entry.address) })),
  );
  writeJson(
    options.file.replace(/(\.pcap)?$/, '.truth.json'),
    truth.map(({ exact: _, ...row }) => row),
  );
  reporter.info('recorded', { file: options.file, bytes: trimmed.file.length, packets: trimmed.packets });
}

function writeJson(file: string, entries: readonly object[]): void {
  writeFileSync(file, `${JSON.stringify(entries, null, 2)}\n`);
}

function readTruth(ledger: string): TruthRow[] {
  const lines = readFileSync(ledger, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as TruthRow);
}
