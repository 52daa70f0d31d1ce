/** The guests of one world as they are on disk. */
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition } from './guest.ts';
import { readGuestFile, writeGuestFile } from './guest-file.ts';

export class DefinedGuests {
  readonly #file: string;
  readonly #byName = new Map<string, GuestDefinition>();

  constructor(file: string) {
    this.#file = file;
  }

  load(): void {
    for (const guest of readGuestFile(this.#file)) this.#byName.set(guest.name, guest);
  }

  /** Writes all definitions; a change of a guest is on disk after it. */
  save(): void {
    writeGuestFile(this.#file, this.all());
  }

  all(): GuestDefinition[] {
    return [...this.#byName.values()];
  }

  get(name: string): GuestDefinition | undefined {
    return this.#byName.get(name);
  }

  /** Throws `lab.guest_unknown`. */
  find(name: string): GuestDefinition {
    const guest = this.#byName.get(name);
    if (!guest) throw new CodedError('lab.guest_unknown', `There is no guest "${name}"`);
    return guest;
  }

  /** Adds a guest, which is on disk after the next `save`. */
  add(guest: GuestDefinition): void {
    this.#byName.set(guest.name, guest);
  }

  /** Removes a guest, on disk too. */
  remove(name: string): void {
    this.#byName.delete(name);
    this.save();
  }
}
