/**
 * Settings from the environment: each has a name, a type, a default, a unit and a sentence.
 *
 * A program's `config.ts` is the only reader of the environment; the settings reference is made from the same
 * definitions, so it can't go stale. All faults are reported at once, each saying what to do.
 */
import { readFileSync } from 'node:fs';
import { CodedError, describeError } from '#common/errors/index.ts';
import { parsePrefix } from '#common/ip/index.ts';

export interface Setting<T> {
  /** An empty value is a value of its own; without it, it means that the setting is not set. */
  takesEmpty?: true;
  readonly name: string;
  readonly sentence: string;
  readonly unit?: string;
  readonly defaultText: string;
  /** Throws an `Error` whose message completes "NAME …". */
  parse(text: string | undefined): T;
}

type Settings = Record<string, Setting<unknown>>;
export type SettingValues<S extends Settings> = {
  readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never;
};

/** Reads all settings; throws one `CodedError` (`config.invalid`) naming every fault. */
export function readSettings<S extends Settings>(
  settings: S,
  environment: Readonly<Record<string, string | undefined>>,
): SettingValues<S> {
  const values: Record<string, unknown> = {};
  const faults: string[] = [];
  for (const [key, setting] of Object.entries(settings)) {
    try {
      const text = readText(environment, setting.name);
      values[key] = setting.parse(text === '' && !setting.takesEmpty ? undefined : text);
    } catch (error) {
      faults.push(`${setting.name} ${(error as Error).message}`);
    }
  }
  if (faults.length > 0) throw new CodedError('config.invalid', `${faults.join('. ')}.`);
  return values as SettingValues<S>;
}

/**
 * Names in the environment that look like a setting and are none: those with the program's own prefix, and those that differ from a
 * setting by two letters at most. `others`: names with that prefix that another program reads.
 */
export function findUnknownNames(
  settings: Settings,
  environment: Readonly<Record<string, string | undefined>>,
  prefix: string,
  others: readonly string[] = [],
): { name: string; meant: string | null }[] {
  const known = Object.values(settings).flatMap(({ name }) => [name, `${name}_FILE`]);
  return Object.keys(environment).flatMap((name) => {
    if (!name.startsWith('SVC_') || known.includes(name) || others.includes(name)) return [];
    const meant = known.find((one) => isWithinTwo(one, name)) ?? null;
    return meant !== null || name.startsWith(prefix) ? [{ name, meant }] : [];
  });
}

/** Whether at most two letters have to be added, removed or changed. */
function isWithinTwo(one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > 2) return false;
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1)
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (one[i - 1] === other[j - 1] ? 0 : 1));
    row = next;
  }
  return row[other.length]! <= 2;
}

/**
 * The text of a setting, or the content of the file that `NAME_FILE` names, without the end of its last line: secrets are
 * mounted into containers as files. Throws when both are given, or the file can't be read.
 */
function readText(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
): string | undefined {
  const text = environment[name];
  const file = environment[`${name}_FILE`];
  if (!file) return text;
  if (text) throw new Error(`and ${name}_FILE are both set: keep one of them`);
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw new Error(`can't be read from the file in ${name}_FILE: ${describeError(error)}`);
  }
}

export function textSetting(name: string, fallback: string, sentence: string): Setting<string> {
  return { name, sentence, defaultText: fallback || 'empty', parse: (text) => text ?? fallback };
}

export function optionalTextSetting(
  name: string,
  sentence: string,
  defaultText = 'unset',
): Setting<string | null> {
  return { name, sentence, defaultText, parse: (text) => text ?? null };
}

export function integerSetting(
  name: string,
  fallback: number,
  range: { min: number; max: number; unit?: string },
  sentence: string,
): Setting<number> {
  return {
    name,
    sentence,
    ...(range.unit ? { unit: range.unit } : {}),
    defaultText: String(fallback),
    parse(text) {
      if (text === undefined) return fallback;
      const value = Number(text);
      if (!/^-?\d+$/.test(text) || value < range.min || value > range.max) {
        throw new Error(`must be a whole number from ${range.min} to ${range.max}, not "${text}"`);
      }
      return value;
    },
  };
}

/** A decimal such as `1.25` as a whole number of its smallest step: with 4 places, 12,500. */
export function decimalSetting(
  name: string,
  fallback: string,
  range: { places: number; max: number; unit?: string },
  sentence: string,
): Setting<number> {
  const pattern = new RegExp(`^(\\d{1,9})(?:\\.(\\d{1,${range.places}}))?$`);
  return {
    name,
    sentence,
    ...(range.unit ? { unit: range.unit } : {}),
    defaultText: fallback,
    parse(text = fallback) {
      const match = pattern.exec(text);
      if (match === null || Number(text) > range.max) {
        throw new Error(
          `must be a number from 0 to ${range.max} with at most ${range.places} decimals, not "${text}"`,
        );
      }
      return Number(match[1]) * 10 ** range.places + Number((match[2] ?? '').padEnd(range.places, '0'));
    },
  };
}

export function booleanSetting(name: string, fallback: boolean, sentence: string): Setting<boolean> {
  return {
    name,
    sentence,
    defaultText: fallback ? '1' : '0',
    parse(text) {
      if (text === undefined) return fallback;
      if (text === '1' || text === 'true') return true;
      if (text === '0' || text === 'false') return false;
      throw new Error(`must be 1 or 0, not "${text}"`);
    },
  };
}

export function choiceSetting<const C extends string>(
  name: string,
  choices: readonly C[],
  fallback: C,
  sentence: string,
): Setting<C> {
  return {
    name,
    sentence: `${sentence} One of: ${choices.join(', ')}.`,
    defaultText: fallback,
    parse(text) {
      if (text === undefined) return fallback;
      const found = choices.find((choice) => choice === text);
      if (found === undefined) throw new Error(`must be one of ${choices.join(', ')}, not "${text}"`);
      return found;
    },
  };
}

/** One of `choices`, or null where none was made; `defaultText` says in the reference what that means. */
export function optionalChoiceSetting<const C extends string>(
  name: string,
  choices: readonly C[],
  sentence: string,
  defaultText: string,
): Setting<C | null> {
  const [first] = choices;
  const choice = choiceSetting(name, choices, first!, sentence);
  return { ...choice, defaultText, parse: (text) => (text === undefined ? null : choice.parse(text)) };
}

/** A `postgres://` URL, or null for the embedded server. The URL itself never appears in an error: it may hold a password. */
export function databaseUrlSetting(
  name: string,
  sentence: string,
  defaultText = 'unset: embedded PostgreSQL in the data directory',
): Setting<string | null> {
  return {
    name,
    sentence,
    defaultText,
    parse(text) {
      if (text === undefined) return null;
      const url = URL.parse(text);
      if (!url || !['postgres:', 'postgresql:'].includes(url.protocol)) {
        throw new Error('must be a PostgreSQL URL such as postgres://user:password@host:5432/database');
      }
      return text;
    },
  };
}

/** Addresses and prefixes, separated by commas; empty when unset. */
export function prefixListSetting(name: string, sentence: string): Setting<readonly string[]> {
  return {
    name,
    sentence,
    defaultText: 'empty',
    parse(text) {
      const prefixes = (text ?? '').split(',').map((one) => one.trim());
      const given = prefixes.filter((one) => one !== '');
      const wrong = given.find((one) => parsePrefix(one) === null);
      if (wrong !== undefined)
        throw new Error(
          `must be addresses or prefixes such as 10.0.0.0/8, separated by commas, not "${wrong}"`,
        );
      return given;
    },
  };
}

/** Host names in lower case, separated by commas; empty when unset. */
export function hostListSetting(name: string, sentence: string): Setting<readonly string[]> {
  return {
    name,
    sentence,
    defaultText: 'empty',
    parse(text) {
      const names = (text ?? '').split(',').map((one) => one.trim().toLowerCase());
      const given = names.filter((one) => one !== '');
      const wrong = given.find((one) => !/^[a-z0-9_][a-z0-9._-]*$/.test(one));
      if (wrong !== undefined)
        throw new Error(
          `must be host names such as my.example.com, without scheme and port, separated by commas, not "${wrong}"`,
        );
      return given;
    },
  };
}

/** An http or https URL without trailing slash, or null. */
/** `emptyIsNone`: an empty value turns off what has an address by default. */
export function httpUrlSetting(
  name: string,
  fallback: string | null,
  sentence: string,
  options: { emptyIsNone?: true } = {},
): Setting<string | null> {
  return {
    name,
    sentence,
    ...(options.emptyIsNone ? { takesEmpty: true } : {}),
    defaultText: fallback ?? 'unset',
    parse(text) {
      if (text === undefined) return fallback;
      if (text === '') return null;
      const url = URL.parse(text);
      if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.password) {
        throw new Error(`must be an http or https URL, not "${text}"`);
      }
      return text.replace(/\/+$/, '');
    },
  };
}

/** A mail server's URL; its password is in no message. */
export function smtpUrlSetting(name: string, sentence: string): Setting<string | null> {
  return {
    name,
    sentence,
    defaultText: 'unset',
    parse(text) {
      if (text === undefined) return null;
      const url = URL.parse(text);
      if (!url || (url.protocol !== 'smtp:' && url.protocol !== 'smtps:') || url.hostname === '')
        throw new Error('must be a URL such as smtp://user:password@mail.example.com:587');
      return text;
    },
  };
}
