/** Names of namespaces and links that no other process of the machine uses, also one with the same id in a container. */
import { randomBytes } from 'node:crypto';

const own = randomBytes(4).toString('hex');
let count = 0;

/** Another name with each call: at most 14 letters, so that a link can have it too. */
export function uniqueName(): string {
  count += 1;
  return `svct${own}${count.toString(36)}`;
}
