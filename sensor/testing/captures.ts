/**
 * Captures for tests: a capture with a fixed key that accepts whole arrays as frames, and a registrable domain without
 * a list.
 */
import {
  type Capture,
  type CaptureOptions,
  createCapture,
  createReading,
  type ListedAnswer,
  type ListedApplication,
  type ListedConversation,
  type ListedFlow,
  type ReadingResult,
  type WindowHost,
} from '#sensor/capture/index.ts';

/** The last two labels; null for addresses and single labels. */
export function testDomain(host: string): string | null {
  const labels = host.split('.');
  return labels.length < 2 || /^[\d.:]+$/.test(host) ? null : labels.slice(-2).join('.');
}

/** A capture on `br0` with the local prefixes 192.0.2.0/24 and 2001:db8::/32. */
export function testCapture(options: Partial<CaptureOptions> = {}): Capture {
  return createCapture({
    name: 'br0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: testDomain,
    local: { prefixes: ['192.0.2.0/24', '2001:db8::/32'], addresses: [] },
    hashKey: [1, 2],
    flowsMax: 1024,
    ...options,
  });
}

/** Start of the minute used by tests. */
export const testMinute = 1_700_000_040;

/** Passes a whole frame to a capture, `seconds` into the test's minute. */
export function offer(capture: Capture, frame: Uint8Array, seconds = 1): void {
  const whole = Math.floor(seconds);
  const nanoseconds = Math.round((seconds - whole) * 1e9);
  capture.observe(frame, 0, frame.length, frame.length, testMinute + whole, nanoseconds, -1);
}

/** A reading with all its rows. */
export interface WholeReading extends Pick<ReadingResult, 'totals' | 'cut'> {
  flows: ListedFlow[];
  answers: ListedAnswer[];
  conversations: ListedConversation[];
  hosts: WindowHost[];
  applications: ListedApplication[];
}

/** Creates every row. */
export function wholeReading(result: ReadingResult, answers: ListedAnswer[]): WholeReading {
  const { totals, cut, flows, conversations, hosts, applications } = result;
  return {
    totals,
    cut,
    answers,
    flows: [...flows],
    conversations: [...conversations],
    hosts: [...hosts],
    applications: [...applications],
  };
}

/** Reads frames like a file. */
export function readAll(frames: readonly Uint8Array[], linkType = 1): WholeReading {
  const answers: ListedAnswer[] = [];
  const reading = createReading({
    registrableDomain: testDomain,
    local: { prefixes: [], addresses: [] },
    packetsMax: Math.max(64, frames.length),
    onAnswer: (answer) => answers.push(answer.make()),
  });
  for (const [i, frame] of frames.entries()) {
    reading.observe(frame, 0, frame.length, frame.length, testMinute + i * 0.001, linkType);
  }
  return wholeReading(reading.finish(), answers);
}
