/**
 * What processes of test files tell, shown to people as it comes, and added up by file. Counts tests, not files or suites.
 * A skipped or todo test fails its file where `CI` is set.
 */
import { inspect } from 'node:util';

interface TestOutcome {
  file: string;
  name: string;
  /** 0 outside of any group. */
  nesting: number;
  ms: number;
  isSuite: boolean;
  /** Skipped or todo. */
  isLeftOut: boolean;
}

/** What a process of test files tells; `file` is the path of a test file. */
export type TestMessage =
  | ({ kind: 'passed' } & TestOutcome)
  | ({ kind: 'failed'; error: string } & TestOutcome)
  | { kind: 'said'; file: string; text: string }
  /** Processor time of the file: its process while it ran, and programs that ended meanwhile. */
  | { kind: 'spent'; file: string; cpuSeconds: number };

export interface FileResult {
  file: string;
  passed: number;
  failed: number;
  seconds: number;
  /** Without what the tests' database server and browser spent for it. */
  cpuSeconds: number;
  /** Titles of what failed. */
  failures: string[];
  /** It failed, and passed when it ran once more. */
  isFlaky?: true;
}

export class TestReport {
  readonly #write: (text: string) => void;
  readonly #files = new Map<string, FileResult>();

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  take(message: TestMessage): void {
    const { file } = message;
    const known = this.#files.get(file);
    const result = known ?? { file, passed: 0, failed: 0, seconds: 0, cpuSeconds: 0, failures: [] };
    this.#files.set(file, result);
    if (message.kind === 'said') this.#write(`      ${message.text}\n`);
    else if (message.kind === 'spent') this.#endFile(result, message.cpuSeconds);
    else this.#takeOutcome(result, message);
  }

  results(): FileResult[] {
    return [...this.#files.values()];
  }

  #takeOutcome(result: FileResult, message: TestMessage & TestOutcome): void {
    if (message.nesting === 0) result.seconds += message.ms / 1000;
    if (message.isSuite) return;
    const isRefused = message.isLeftOut && process.env.CI !== undefined;
    if (message.isLeftOut) this.#write(`left out  ${message.file}: ${message.name}\n`);
    if (message.kind === 'failed') {
      this.#write(`FAIL  ${message.file}\n      ${message.name}\n${indent(message.error)}\n`);
    }
    if (message.kind === 'failed' || isRefused) {
      result.failed += 1;
      result.failures.push(message.name);
    } else if (!message.isLeftOut) result.passed += 1;
  }

  #endFile(result: FileResult, cpuSeconds: number): void {
    result.cpuSeconds = cpuSeconds;
    const { file, passed, failed, seconds } = result;
    const verdict = failed > 0 ? 'FAIL' : 'ok  ';
    const cost = `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of processor time`;
    this.#write(`${verdict}  ${file}  ${passed + failed} tests, ${cost}\n`);
  }
}

/** Processor time from which on a file that is not marked slow is named. */
const fastSecondsMax = 5;

export interface RunClosing {
  failedChecks?: number;
  /** Lines about how long parts took. */
  times?: readonly string[];
  /** The files are not marked slow. */
  isFast?: boolean;
}

/** Prints the closing lines. Returns the exit status. */
export function closeRun(results: readonly FileResult[], closing: RunClosing = {}): number {
  const { failedChecks = 0, times = [], isFast = false } = closing;
  const list = (title: string, lines: readonly string[]) => {
    if (lines.length > 0) console.log(`\n${title}:\n${lines.map((line) => `  ${line}`).join('\n')}`);
  };
  const describeCost = ({ file, seconds, cpuSeconds }: FileResult) =>
    `${seconds.toFixed(1)} s, ${cpuSeconds.toFixed(1)} s of processor time: ${file}`;
  list(
    'The slowest files',
    [...results]
      .sort((a, b) => b.seconds - a.seconds)
      .slice(0, 10)
      .map(describeCost),
  );
  list(
    `Over ${fastSecondsMax} s of processor time without a line that says why it is slow`,
    results.filter((one) => isFast && one.cpuSeconds > fastSecondsMax).map(describeCost),
  );
  list(
    'Failed',
    results.flatMap((one) => one.failures.map((name) => `${one.file}: ${name}`)),
  );
  list(
    'Flaky: failed beside others, passed alone',
    results.filter((one) => one.isFlaky).map((one) => one.file),
  );
  const passed = results.reduce((sum, one) => sum + one.passed, 0);
  const failed = results.reduce((sum, one) => sum + one.failed, failedChecks) || Number(passed === 0);
  console.log([...times, '', `${passed} passed, ${failed} failed`].map((line) => `\n${line}`).join(''));
  return failed > 0 ? 1 : 0;
}

/** The text of a failure. */
export function describeFailure(error: Error): string {
  const cause = error.cause instanceof Error ? error.cause : error;
  return inspect(cause, { depth: 4, colors: false });
}

function indent(text: string): string {
  return text
    .split('\n')
    .slice(0, 40)
    .map((line) => `      ${line}`)
    .join('\n');
}
