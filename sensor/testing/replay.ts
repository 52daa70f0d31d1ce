/**
 * Replays a capture file on both ends of a veth pair of this network namespace, each packet at its own time and, as far as the file
 * has them, with all bytes: what protected addresses send leaves through the near end, all else arrives through the far end. Of
 * packets that several interfaces recorded only the first copy is sent. Says when it began, and then how late it was at most.
 *
 * usage: replay.ts FILE FAR_INTERFACE NEAR_INTERFACE COPIES arriving|both PREFIX...
 */
import { setTimeout as wait } from 'node:timers/promises';
import { compileLocalScope } from '#sensor/capture/index.ts';
import { openCaptureFile } from '#sensor/capture-files/index.ts';
import { openFrameSender } from './frame-sender.ts';
import { ethernet } from './frames.ts';

export type ReplayReport = { startedAt: number } | { sent: number; lateMs: number };

/** The shortest wait: a packet goes at most so much before its time. */
const timerMs = 1;
const linuxAny = 276;
const linuxAnyBytes = 20;

const [file, far, near, copies, which, ...prefixes] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
];
const scope = compileLocalScope({ prefixes, addresses: [] });
const frames = readFrames();
const [arriving, leaving] = [far, near].map((name) => openFrameSender(name));
const say = (report: ReplayReport) => process.stdout.write(`${JSON.stringify(report)}\n`);
const from = performance.now();
say({ startedAt: performance.timeOrigin + from });
let lateMs = 0;
for (const { atMs, isLocal, bytes } of frames) {
  const earlyMs = atMs - (performance.now() - from);
  if (earlyMs >= timerMs) await wait(earlyMs);
  lateMs = Math.max(lateMs, performance.now() - from - atMs);
  const sender = (isLocal ? leaving : arriving)!;
  for (let copy = 0; copy < Number(copies); copy += 1) sender.send(bytes);
}
say({ sent: frames.length * Number(copies), lateMs });

function readFrames() {
  const capture = openCaptureFile(file);
  const found: { atMs: number; isLocal: boolean; bytes: Buffer }[] = [];
  let first = -1;
  let index = -1;
  while (capture.next()) {
    const { bytes, offset, capturedLength, wireLength, linkType } = capture;
    const at = capture.seconds * 1000 + capture.nanoseconds / 1e6;
    if (first < 0) first = at;
    let frame = Buffer.alloc(wireLength);
    frame.set(bytes.subarray(offset, offset + capturedLength));
    if (linkType === linuxAny) {
      const own = frame.readUInt32BE(4);
      if (index < 0) index = own;
      if (own !== index) continue;
      frame = Buffer.from(ethernet(frame.subarray(linuxAnyBytes)));
    }
    const isLocal = isOfScope(frame);
    if (which === 'both' || !isLocal) found.push({ atMs: at - first, isLocal, bytes: frame });
  }
  capture.close();
  return found;
}

/** True when a protected address sends the frame. */
function isOfScope(frame: Buffer): boolean {
  const isIpv4 = frame.readUInt16BE(12) === 0x0800;
  const words = new Int32Array(8);
  if (isIpv4) words[3] = frame.readInt32BE(26);
  else for (let word = 0; word < 4; word += 1) words[word] = frame.readInt32BE(22 + word * 4);
  return (scope.sides(isIpv4 ? 4 : 6, words, 0) & 1) === 1;
}
