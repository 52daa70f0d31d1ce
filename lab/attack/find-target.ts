/** Which addresses an attack may reach: public ones of guests that are on, and no others. */
import { CodedError } from '#common/errors/index.ts';

/** A guest as the control socket shows it. */
export interface ShownGuest {
  name: string;
  power: string;
  addresses: { address: string }[];
  private_interfaces: { address: string }[];
}

const listedMax = 20;

/** Throws `lab.attack_refused`, which names the allowed addresses, unless `target` belongs to a guest that is on. */
export function findTarget(guests: readonly ShownGuest[], target: string): ShownGuest {
  const found = guests.find((guest) => guest.addresses.some((entry) => entry.address === target));
  if (found?.power === 'on') return found;
  const isPrivate = guests.some((guest) => guest.private_interfaces.some((nic) => nic.address === target));
  let reason = `${target} is not an address of a guest of this lab`;
  if (found) reason = `The guest "${found.name}" with ${target} is off`;
  else if (isPrivate) reason = `${target} is on a private network, which nothing outside reaches`;
  throw new CodedError('lab.attack_refused', `${reason}. ${listAllowed(guests)}`);
}

function listAllowed(guests: readonly ShownGuest[]): string {
  const allowed = guests
    .filter((guest) => guest.power === 'on')
    .flatMap((guest) => guest.addresses.map((entry) => entry.address));
  if (allowed.length === 0) return 'No guest of this lab is on.';
  const rest = allowed.length > listedMax ? ` and ${allowed.length - listedMax} more` : '';
  return `Allowed targets: ${allowed.slice(0, listedMax).join(', ')}${rest}.`;
}
