/**
 * Counters of spoofed packets of a minute: what each MAC sent from which address of another.
 *
 * Bounded, because a sender may use any MAC: what finds no row counts in one row without MAC and address.
 */
import { formatWords } from '../address-words.ts';
import type { Packet } from '../decode/packet.ts';
import { KeyedTable } from '../keyed-table.ts';
import { deviceKeyText } from './address-owners.ts';
import type { SpoofedRow } from './minute-report.ts';

/** With the one for the rest. */
const rowsMax = 64;
const keyWords = 7;

export class SpoofedTable {
  readonly #rows: KeyedTable;
  #restBytes = 0;
  #restPackets = 0;

  constructor(seed: number) {
    this.#rows = new KeyedTable({ keyWords, wordCount: 0, sumCount: 2, recordsMax: rowsMax - 1 }, seed);
  }

  add(p: Packet, packets: number): void {
    const { key, sums } = this.#rows;
    key[0] = p.source0;
    key[1] = p.source1;
    key[2] = p.source2;
    key[3] = p.source3;
    key[4] = p.version;
    key[5] = p.view.getUint16(p.macAt) | (p.vlan << 16);
    key[6] = p.view.getInt32(p.macAt + 2);
    const record = this.#rows.locate();
    if (record < 0) {
      this.#restBytes += p.ipLength;
      this.#restPackets += packets;
      return;
    }
    sums[record * 2]! += p.ipLength;
    sums[record * 2 + 1]! += packets;
  }

  rows(segment: string): SpoofedRow[] {
    const { keys, sums, count } = this.#rows;
    const rows = Array.from({ length: count }, (_, record) => {
      const at = record * keyWords;
      return {
        deviceKey: deviceKeyText(segment, keys[at + 5]!, keys[at + 6]!),
        address: formatWords(keys[at + 4]!, keys[at]!, keys[at + 1]!, keys[at + 2]!, keys[at + 3]!),
        bytes: sums[record * 2]!,
        packets: sums[record * 2 + 1]!,
      };
    });
    if (this.#restPackets === 0) return rows;
    return [...rows, { deviceKey: '', address: '', bytes: this.#restBytes, packets: this.#restPackets }];
  }

  /** Addresses that have rows. */
  addresses(): string[] {
    return this.#rows.count === 0 ? [] : [...new Set(this.rows('').map(({ address }) => address))];
  }

  clear(): void {
    this.#rows.clear();
    this.#restBytes = this.#restPackets = 0;
  }
}
