/** Rules for the texts in an order or an update of a server. The API and the portal apply the same rules. */

import { CodedError } from '#common/errors/index.ts';
import { schemas } from '#contracts/customer-api/index.ts';
import type { LabelTerm } from '#operations/views/server-list-store.ts';

const userDataBytesMax = 65_536;
const namePattern = new RegExp(schemas.namePattern);
const hostnamePattern = new RegExp(schemas.hostnamePattern);
const plainTextPattern = new RegExp(schemas.plainTextPattern);
const labelPattern = /^[A-Za-z0-9._/-]{1,63}$/;
/** Characters as people and JSON Schema count them, not UTF-16 units. */
const lengthOf = (text: string) => [...text].length;

/** Everything that is wrong with the fields, one fault for each. */
export function validateServerFields(fields: {
  name?: string | undefined;
  hostname?: string | undefined;
  labels?: Readonly<Record<string, string | null>> | undefined;
  userData?: string | undefined;
}): FieldFault[] {
  const faults: FieldFault[] = [];
  const check = (path: string, isRight: boolean, message: string, code = 'pattern') => {
    if (!isRight) faults.push({ path, code, message });
  };
  const { name, hostname, labels, userData } = fields;
  if (name !== undefined)
    check(
      'name',
      name.length >= 1 && lengthOf(name) <= 64 && namePattern.test(name),
      'must be 1 to 64 characters without spaces around them and without control characters',
    );
  if (hostname !== undefined)
    check(
      'hostname',
      hostname.length <= 253 && hostnamePattern.test(hostname),
      'must be a host name in lower case',
    );
  for (const [key, value] of Object.entries(labels ?? {})) {
    check(`labels.${key}`, labelPattern.test(key), 'a label is named by letters, digits and . _ / -');
    check(`labels.${key}`, lengthOf(value ?? '') <= 255, 'must be at most 255 characters', 'maxLength');
    check(
      `labels.${key}`,
      plainTextPattern.test(value ?? ''),
      'must not contain control characters or characters that turn the direction of writing',
    );
  }
  if (userData !== undefined) {
    const fits = Buffer.byteLength(userData) <= userDataBytesMax;
    check('user_data', fits, 'must be at most 64 KiB as UTF-8', 'maxLength');
  }
  return faults;
}

/** A field that can't stand as it was given; goes out as one entry of a 422. */
export interface FieldFault {
  path: string;
  code: string;
  message: string;
  allowed?: (string | number)[];
}

/** The refusal of an input, with every fault in it. */
export function invalidServer(fields: FieldFault[]): CodedError {
  return new CodedError('servers.invalid', 'Some fields are not as they must be; see `fields`.', { fields });
}

const key = '[A-Za-z0-9._/-]{1,63}';
const comparison = new RegExp(`^(${key})(==|!=|=)([^,]{0,255})$`);
const existence = new RegExp(`^(!?)(${key})$`);

/**
 * `env=prod,tier!=test,owner,!old`: every term must hold. `!=` holds as well for a server without that label. Null for
 * a text that is no selector.
 */
export function parseLabelSelector(text: string): LabelTerm[] | null {
  const terms: LabelTerm[] = [];
  for (const part of text.split(',').map((one) => one.trim())) {
    const compared = comparison.exec(part);
    const existing = existence.exec(part);
    if (compared)
      terms.push({ key: compared[1]!, is: compared[2] === '!=' ? 'unequal' : 'equal', value: compared[3]! });
    else if (existing)
      terms.push({ key: existing[2]!, is: existing[1] === '!' ? 'absent' : 'present', value: '' });
    else return null;
  }
  return terms;
}

/** What the catalogue offers under this slug or id; a fault in its place when there is no such thing. */
export function pickOffered<T extends { id: number; slug: string }>(
  offered: readonly T[],
  wanted: string | number,
  path: string,
  faults: FieldFault[],
): T | undefined {
  const found = offered.find((one) => one.slug === wanted || String(one.id) === String(wanted));
  if (!found) {
    const allowed = offered.map((one) => one.slug);
    const thing = path === 'iso' ? 'ISO' : path;
    faults.push({ path, code: 'unknown_value', message: `There is no such ${thing}.`, allowed });
  }
  return found;
}
