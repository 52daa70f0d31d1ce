/** What the sensor's detector finds in captured packets, for tests that sent them. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { detectFile } from '#sensor/capture-reader/index.ts';
import { pcapFile, type StoredFrame } from '#sensor/testing/capture-files.ts';

const startSecond = 1_700_000_040;
const stretchedSeconds = 8;
/** Far below the rates of a test, so that the class decides, not the rate. */
const thresholds = {
  inbound: {
    ...{ pps: 4, bps: 60_000, syn_pps: 4, udp_pps: 4, udp_bps: null, icmp_pps: 4, fragment_pps: 4 },
    ...{ amplification_bps: 20_000, amplification_spread_bps: 20_000, connections_per_second: 4 },
  },
};

interface Incident {
  target: { value: string };
  direction: string;
  class: string;
  severity: string;
}

/**
 * Detects attacks on `targets`; each incident as `target direction class severity`, sorted. The packets keep their order and are
 * put at even distances over eight seconds, so that the machine's speed has no part in it.
 */
export async function detectCaptured(path: string, targets: readonly string[]): Promise<string[]> {
  const stretched = path.replace(/\.pcap$/, '.stretched.pcap');
  const limits = path.replace(/\.pcap$/, '.limits.json');
  writeFileSync(stretched, pcapFile(stretch(readFrames(path))));
  writeFileSync(limits, JSON.stringify(thresholds));
  const written: string[] = [];
  const options = { json: true, protect: [...targets], thresholds: limits };
  const status = await detectFile(stretched, options, {
    out: { write: (text) => written.push(text), writeBytes: () => assert.fail('bytes'), end() {} },
    look: { width: null, isColored: false },
    terminal: null,
    complain: (sentence) => assert.fail(sentence),
  });
  assert.equal(status, 0);
  const { incidents } = JSON.parse(written.join('')) as { incidents: Incident[] };
  return incidents
    .map((one) => `${one.target.value} ${one.direction} ${one.class} ${one.severity}`)
    .toSorted();
}

function readFrames(path: string): Uint8Array[] {
  const file = openCaptureFile(path);
  const frames: Uint8Array[] = [];
  while (file.next()) frames.push(file.bytes.slice(file.offset, file.offset + file.capturedLength));
  file.close();
  return frames;
}

function stretch(frames: readonly Uint8Array[]): StoredFrame[] {
  return frames.map((bytes, i) => {
    const at = (i * stretchedSeconds) / frames.length;
    const seconds = Math.floor(at);
    return { bytes, seconds: startSecond + seconds, nanoseconds: Math.floor((at - seconds) * 1e9) };
  });
}
