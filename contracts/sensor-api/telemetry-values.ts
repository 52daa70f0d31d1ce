/** Checks of single values on the telemetry wire. Each throws `telemetry.malformed` and names the field. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress, formatPrefix, parsePrefix } from '#common/ip/index.ts';

/** Longest name or device key on the wire, in UTF-16 units; DNS names end at 253. */
export const textMax = 255;

/** Bytes of any text on the wire. */
export const textBytesMax = 4 * textMax;

/** The last minute a sensor may name: the year 9999 still fits every database's timestamp. */
const lastMinute = 253_402_300_740;

/** A UUID in canonical text. */
export const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not pass.
const controls = /[\u0000-\u001f\u007f-\u009f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must not pass.
const controlsEverywhere = /[\u0000-\u001f\u007f-\u009f]/g;

/** The error of an upload that a sensor of this contract cannot have sent. */
export function malformed(what: string): CodedError {
  return new CodedError('telemetry.malformed', `Malformed telemetry: ${what}.`);
}

/** Text as it may travel: no control characters, well-formed Unicode, at most `textMax` long. */
export function cleanText(text: string): string {
  const cut = text.length > textMax ? text.slice(0, textMax) : text;
  return cut.toWellFormed().replace(controlsEverywhere, '\ufffd');
}

/** The text itself, when it is short enough and has no control characters. */
export function plainText(text: string, lengthMax: number, field: string): string {
  if (text.length > lengthMax) throw malformed(`${field} is longer than ${lengthMax} characters`);
  if (controls.test(text)) throw malformed(`${field} holds a control character`);
  return text;
}

/** A counter that a double holds exactly. */
export function countOf(value: bigint, field: string): number {
  const count = Number(value);
  if (!Number.isSafeInteger(count) || count < 0) throw malformed(`${field} is out of range`);
  return count;
}

/** A counter that a database holds in 32 bits with a sign. */
export function smallCountOf(count: number, field: string): number {
  if (count > 2 ** 31 - 1) throw malformed(`${field} is out of range`);
  return count;
}

/** An address in canonical text. */
export function canonicalAddressText(text: string, field: string): string {
  if (canonicalAddress(text) !== text) throw malformed(`${field} is not an address in canonical text`);
  return text;
}

/** The start of a UTC minute, seconds since 1970. */
export function minuteOf(value: bigint, field: string): number {
  const minute = countOf(value, field);
  if (minute % 60 !== 0 || minute > lastMinute) throw malformed(`${field} is not the start of a UTC minute`);
  return minute;
}

/** An address, or a prefix without host bits, in canonical text. */
export function canonicalPrefixText(text: string, field: string): string {
  if (!text.includes('/')) return canonicalAddressText(text, field);
  const prefix = parsePrefix(text);
  if (!prefix || formatPrefix(prefix) !== text) throw malformed(`${field} is not a prefix in canonical text`);
  return text;
}

export function uuidOf(text: string, field: string): string {
  if (!uuidShape.test(text)) throw malformed(`${field} is not a UUID in canonical text`);
  return text;
}

/** Unix milliseconds before the year 10000. */
export function momentOf(value: bigint, field: string): number {
  const moment = countOf(value, field);
  if (moment > lastMinute * 1000) throw malformed(`${field} is out of range`);
  return moment;
}

/** Column i of every list is one row. */
export function checkColumns(what: string, length: number, columns: readonly (readonly unknown[])[]): void {
  if (columns.some((column) => column.length !== length))
    throw malformed(`the columns of ${what} differ in length`);
}

/** Names of an enum as plain data has them, such as `tls_sni`. */
export type NameOf<Values> = Exclude<Lowercase<keyof Values & string>, 'unspecified'>;

/** The values of a generated enum by name, and the names by value, in the order of telemetry.proto. */
export function namesOf<Values extends object>(values: Values) {
  const named = Object.entries(values).flatMap(([name, value]: [string, string | number]) =>
    typeof value === 'number' && value > 0 ? [[name.toLowerCase() as NameOf<Values>, value] as const] : [],
  );
  return {
    toWire: Object.fromEntries(named) as Record<NameOf<Values>, number>,
    fromWire: new Map(named.map(([name, value]) => [value, name])),
  };
}
