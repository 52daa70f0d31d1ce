/**
 * Structured logging: a lower-case phrase and fields, one line each, on standard error.
 *
 * People read `12:04:05 info  monitor  upload stored  sensor=3 sequence=812`; with `SVC_LOG_FORMAT=json` machines
 * read one JSON object a line. Fields whose name says secret are never written.
 */
import { fstatSync } from 'node:fs';

export type Fields = Readonly<Record<string, unknown>>;

export interface Reporter {
  debug(phrase: string, fields?: Fields): void;
  info(phrase: string, fields?: Fields): void;
  warn(phrase: string, fields?: Fields): void;
  error(phrase: string, fields?: Fields): void;
  /** The same reporter with fields that every line carries. */
  with(fields: Fields): Reporter;
}

export interface ReporterOptions {
  program: string;
  format?: 'text' | 'json';
  level?: 'debug' | 'info' | 'warn' | 'error';
  write?: (line: string) => void;
  /** Lines go to the journal and begin with their priority; by default where standard error is the journal's. */
  isJournal?: boolean;
}

const levels = { debug: 10, info: 20, warn: 30, error: 40 } as const;
/** Of syslog, as systemd reads them at the beginning of a line. */
const priorities = { debug: 7, info: 6, warn: 4, error: 3 } as const;
const secretName = /secret|password|token|authorization|cookie|api_?key|digest|signature/i;

/** Makes a reporter that writes lines of at least `level` (default `info`). */
export function createReporter(options: ReporterOptions, bound: Fields = {}): Reporter {
  const least = levels[options.level ?? 'info'];
  const isJournal = options.isJournal ?? (options.write === undefined && isStandardErrorOfJournal());
  const writeLine = options.write ?? ((line: string) => process.stderr.write(`${line}\n`));
  const emit =
    (level: keyof typeof levels) =>
    (phrase: string, fields: Fields = {}) => {
      if (levels[level] < least) return;
      const write = (line: string) => writeLine(isJournal ? `<${priorities[level]}>${line}` : line);
      const all = hideSecrets({ ...bound, ...fields });
      const at = new Date().toISOString();
      if (options.format === 'json') {
        write(JSON.stringify({ at, level, program: options.program, message: phrase, ...all }));
        return;
      }
      const pairs = Object.entries(all).map(([name, value]) => `${name}=${showValue(value)}`);
      const line = [at.slice(11, 19), level.padEnd(5), options.program.padEnd(10), phrase, ...pairs].join(
        '  ',
      );
      write(escapeControls(line));
    };
  return {
    debug: emit('debug'),
    info: emit('info'),
    warn: emit('warn'),
    error: emit('error'),
    with: (fields) => createReporter(options, { ...bound, ...fields }),
  };
}

/** systemd names the stream that it has connected; it may have been redirected since. */
function isStandardErrorOfJournal(): boolean {
  try {
    const { dev, ino } = fstatSync(2);
    return process.env.JOURNAL_STREAM === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

/** A reporter that says nothing, for tests of things that are not about logging. */
export const silentReporter: Reporter = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  with: () => silentReporter,
};

function hideSecrets(fields: Fields): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined) continue;
    shown[name] = secretName.test(name) ? '[hidden]' : value instanceof Error ? value.message : value;
  }
  return shown;
}

/**
 * Names come from strangers and a log is read in a terminal: escape sequences, line breaks and direction marks are shown
 * as `\\u001b`, so that no value can colour, hide or forge a line. JSON keeps its values, escaped as JSON does.
 */
function escapeControls(line: string): string {
  return line.replaceAll(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function showValue(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return /[\s"]/.test(text) ? JSON.stringify(text) : text;
}
