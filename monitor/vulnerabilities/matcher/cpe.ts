/**
 * Names of products: CPE 2.3 as the NVD writes them (`cpe:2.3:a:openbsd:openssh:9.3:p1:*:…`) and CPE 2.2 as nmap does
 * (`cpe:/a:openbsd:openssh:9.3p1`).
 *
 * A backslash makes the next character a literal one; `*` and `?` without it are wildcards, at the ends of a value only. Names
 * are compared without regard to case.
 */

/** `any` is `*`; `none` is `-`, not applicable; `pattern` is a value with wildcards. */
export type CpeValue =
  | { is: 'any' }
  | { is: 'none' }
  | { is: 'text'; text: string }
  | { is: 'pattern'; pattern: RegExp };

export interface CpeName {
  part: CpeValue;
  vendor: CpeValue;
  product: CpeValue;
  version: CpeValue;
  update: CpeValue;
  edition: CpeValue;
  language: CpeValue;
  softwareEdition: CpeValue;
  targetSoftware: CpeValue;
  targetHardware: CpeValue;
  other: CpeValue;
}

const lengthMax = 1024;
const any: CpeValue = { is: 'any' };

/** Reads a CPE 2.3 formatted string; null for everything else. */
export function parseCpe(text: string): CpeName | null {
  if (text.length > lengthMax) return null;
  const fields = splitUnescaped(text);
  if (fields.length !== 13 || fields[0]!.toLowerCase() !== 'cpe' || fields[1] !== '2.3') return null;
  return toName(fields.slice(2).map(readValue));
}

/** Reads a CPE 2.2 URI; null for everything else. Missing parts are `any`. */
export function parseCpeUri(text: string): CpeName | null {
  if (text.length > lengthMax || !/^cpe:\//i.test(text)) return null;
  const fields = text.slice(5).split(':');
  if (fields.length > 7) return null;
  const [part, vendor, product, version, update, edition = '', language] = fields;
  // A packed edition is `~edition~software edition~target software~target hardware~other`.
  const isPacked = edition.startsWith('~');
  const packed = isPacked ? edition.slice(1).split('~') : [edition];
  if (isPacked && packed.length !== 5) return null;
  const [own, software, targetSoftware, targetHardware, other] = packed;
  const texts = [part, vendor, product, version, update, own, language];
  return toName([...texts, software, targetSoftware, targetHardware, other].map(readUriValue));
}

/** Whether a value with or without wildcards is this text. `none` and a text never match. */
export function matchesText(value: CpeValue, text: string): boolean {
  if (value.is === 'text') return value.text === text;
  return value.is === 'any' || (value.is === 'pattern' && value.pattern.test(text));
}

function toName(values: readonly (CpeValue | null)[]): CpeName | null {
  if (values.some((value) => value === null)) return null;
  const [part, vendor, product, version, update, edition, language, ...rest] = values as CpeValue[];
  const [softwareEdition, targetSoftware, targetHardware, other] = rest;
  if (!['a', 'o', 'h'].some((letter) => matchesText(part!, letter))) return null;
  return {
    ...{ part: part!, vendor: vendor!, product: product!, version: version!, update: update! },
    ...{ edition: edition!, language: language!, softwareEdition: softwareEdition! },
    ...{ targetSoftware: targetSoftware!, targetHardware: targetHardware!, other: other! },
  };
}

function splitUnescaped(text: string): string[] {
  const fields: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i += 1) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === ':') {
      fields.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...fields, text.slice(start)];
}

/** A character of a value, or a wildcard. */
type Piece = { char: string; isWildcard: boolean };

function readValue(field: string): CpeValue | null {
  if (field === '*') return any;
  if (field === '-') return { is: 'none' };
  const pieces: Piece[] = [];
  for (let i = 0; i < field.length; i += 1) {
    const isEscaped = field[i] === '\\';
    if (isEscaped) i += 1;
    const char = field[i];
    if (char === undefined) return null;
    pieces.push({ char, isWildcard: !isEscaped && (char === '*' || char === '?') });
  }
  return toValue(pieces);
}

function readUriValue(field: string | undefined): CpeValue | null {
  if (field === undefined || field === '') return any;
  if (field === '-') return { is: 'none' };
  const pieces: Piece[] = [];
  for (let i = 0; i < field.length; i += 1) {
    if (field[i] !== '%') {
      pieces.push({ char: field[i]!, isWildcard: false });
      continue;
    }
    const code = field.slice(i + 1, i + 3).toLowerCase();
    if (!/^[0-9a-f]{2}$/.test(code)) return null;
    i += 2;
    if (code === '01' || code === '02') pieces.push({ char: code === '01' ? '?' : '*', isWildcard: true });
    else pieces.push({ char: String.fromCharCode(Number.parseInt(code, 16)), isWildcard: false });
  }
  return toValue(pieces);
}

function toValue(pieces: readonly Piece[]): CpeValue | null {
  if (pieces.length === 0 || pieces.some(({ char }) => !/^[\x21-\x7e]$/.test(char))) return null;
  const first = pieces.findIndex(({ isWildcard }) => !isWildcard);
  const last = pieces.findLastIndex(({ isWildcard }) => !isWildcard);
  if (first < 0) return wildcardsOnly(pieces);
  const literal = pieces.slice(first, last + 1);
  if (literal.some(({ isWildcard }) => isWildcard)) return null;
  const text = literal.map(({ char }) => char.toLowerCase()).join('');
  if (literal.length === pieces.length) return { is: 'text', text };
  const [before, behind] = [toPattern(pieces.slice(0, first)), toPattern(pieces.slice(last + 1))];
  if (before === null || behind === null) return null;
  const escaped = text.replace(/[^a-z0-9]/g, '\\$&');
  return { is: 'pattern', pattern: new RegExp(`^${before}${escaped}${behind}$`) };
}

function wildcardsOnly(pieces: readonly Piece[]): CpeValue | null {
  const pattern = toPattern(pieces);
  return pattern === null ? null : { is: 'pattern', pattern: new RegExp(`^${pattern}$`) };
}

/** One `*`, or question marks, each for one character or none. */
function toPattern(wildcards: readonly Piece[]): string | null {
  const text = wildcards.map(({ char }) => char).join('');
  if (text === '') return '';
  if (text === '*') return '.*';
  return text.includes('*') ? null : `.{0,${text.length}}`;
}
