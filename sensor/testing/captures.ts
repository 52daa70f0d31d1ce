/**
 * Captures for tests: a capture with a fixed key that takes frames as whole arrays, and a registrable domain that
 * needs no list.
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
  type ListedHost,
  type ReadingResult,
} from '#sensor/capture/index.ts';

/** Two labels, none for addresses and single labels. */
export function testDomain(host: string): string | null {
  const labels = host.split('.');
  return labels.length < 2 || /^[\d.:]+$/.test(host) ? null : labels.slice(-2).join('.');
}

/** A capture on `br0` for which 192.0.2.0/24 and 2001:db8::/32 are local. */
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

/** Start of the minute in which tests play. */
export const testMinute = 1_700_000_040;

/** Hands a whole frame to a capture, `seconds` into the test's minute. */
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
  hosts: ListedHost[];
  applications: ListedApplication[];
}

/** Makes every row. */
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

/** Reads frames as a file would be read. */
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
