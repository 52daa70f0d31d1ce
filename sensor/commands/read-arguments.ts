/**
 * The options of `sensor read`, and a fast parser for valid command lines with these options alone.
 *
 * Commander, which explains invalid command lines, loads half of Node.js: a third of the time for a small file. So
 * clearly valid command lines are parsed here, and all others are passed to commander.
 */
import type { ReadOptions } from '#sensor/capture-reader/index.ts';

interface ReadOption {
  flags: string;
  text: string;
  /** May be repeated. */
  isList?: boolean;
  default?: string;
}

export const readArguments: readonly ReadOption[] = [
  { flags: '--json', text: 'print everything as JSON' },
  { flags: '--minutes', text: 'add the traffic of each minute' },
  {
    flags: '--local <prefix>',
    text: 'local prefix, which defines "in" and "out"; may be repeated',
    isList: true,
  },
  { flags: '--host <address>', text: 'only this address or prefix; may be repeated', isList: true },
  {
    flags: '--name <text>',
    text: 'only names that contain this; * matches any text; may be repeated',
    isList: true,
  },
  { flags: '--port <port>', text: 'only this port of either end; may be repeated', isList: true },
  {
    flags: '--protocol <name>',
    text: 'only this IP protocol: tcp, udp, icmp, gre, … or a number; may be repeated',
    isList: true,
  },
  {
    flags: '--from <time>',
    text: 'only packets from this time on: 2026-01-31T12:00:00Z, 12:00:30 (UTC), or +90s, +5m after the first',
  },
  { flags: '--to <time>', text: 'only packets before this time' },
  {
    flags: '--sort <order>',
    text: 'order of the tables: bytes, packets, sent, received, name, or time (of the start)',
    default: 'bytes',
  },
  { flags: '--top <rows>', text: 'rows of each table; 0 for all (default: 15)' },
];

/** Files and options of a clearly valid command line; null for all others. */
export function lookAtArguments(args: readonly string[]): { files: string[]; options: ReadOptions } | null {
  const files: string[] = [];
  const options: Record<string, boolean | string | string[]> = {};
  for (const { flags, isList, default: value } of readArguments) {
    if (isList) options[nameOf(flags)] = [];
    else if (value !== undefined) options[nameOf(flags)] = value;
  }
  for (let i = 0; i < args.length; i += 1) {
    const arg = args[i]!;
    if (arg === '-' || !arg.startsWith('-')) {
      files.push(arg);
      continue;
    }
    const option = readArguments.find(({ flags }) => `--${nameOf(flags)}` === arg);
    if (!option) return null;
    const name = nameOf(option.flags);
    if (!option.flags.includes('<')) {
      options[name] = true;
      continue;
    }
    i += 1;
    const value = args[i];
    if (value === undefined || value.startsWith('-')) return null;
    if (option.isList) (options[name] as string[]).push(value);
    else options[name] = value;
  }
  return files.length > 0 ? { files, options } : null;
}

/** Runs `sensor read` for a clearly valid command line; returns false when commander must parse it. */
export async function readAtOnce(args: readonly string[]): Promise<boolean> {
  const found = lookAtArguments(args);
  if (!found) return false;
  if (process.getuid?.() === 0) await (await import('./drop-root.ts')).dropRoot('read', found.files);
  process.exitCode = await (await import('./read.ts')).read(found.files, found.options);
  return true;
}

function nameOf(flags: string): string {
  return flags.split(' ')[0]!.slice(2);
}
