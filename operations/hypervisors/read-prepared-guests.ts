import { readFile } from 'node:fs/promises';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { CodedError, describeError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import type { PreparedGuest } from './guest.ts';

const PreparedGuests = Type.Array(
  Type.Object({
    name: Type.String({ minLength: 1 }),
    mac: Type.String({ pattern: '^([0-9a-f]{2}:){5}[0-9a-f]{2}$' }),
    addresses: Type.Array(Type.String(), { minItems: 1 }),
  }),
);

/** Reads `SVC_OPERATIONS_SIMULATED_GUESTS`: a JSON array of {name, mac, addresses}. Addresses come out canonical. */
export async function readPreparedGuests(file: string): Promise<PreparedGuest[]> {
  const refuse = (what: string, cause?: unknown) =>
    new CodedError(
      'hypervisor.guests_file',
      `SVC_OPERATIONS_SIMULATED_GUESTS (${file}): ${what}.`,
      {},
      cause,
    );
  let content: unknown;
  try {
    content = JSON.parse(await readFile(file, 'utf8'));
  } catch (error) {
    throw refuse(`can't be read as JSON (${describeError(error)})`, error);
  }
  if (!Value.Check(PreparedGuests, content)) {
    throw refuse('must be a JSON array of {"name", "mac": "52:54:00:…" in lower case, "addresses": […]}');
  }
  return content.map((guest) => ({
    name: guest.name,
    mac: guest.mac,
    addresses: guest.addresses.map((text) => {
      const address = canonicalAddress(text);
      if (address === null) throw refuse(`"${text}" is not an IP address`);
      return address;
    }),
  }));
}
