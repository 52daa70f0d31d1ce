/**
 * The last parsed DNS answer: its words in `dnsMessage` for output writers, and an object for filters and tables.
 */
import { formatWords } from '../address-words.ts';
import type { Packet } from '../decode/packet.ts';
import {
  dnsAddresses,
  dnsAddressTtls,
  dnsChain,
  dnsMessage,
  dnsNameLengths,
  dnsNames,
} from '../names/dns-message.ts';
import type { ListedAnswer } from './listed-rows.ts';

const nameMax = 256;

/** An answer as it was read; valid during the callback only. */
export interface RawAnswer {
  version: number;
  /** Four words of the client's address, then four of the server's. */
  readonly ends: Int32Array;
  clientPort: number;
  serverPort: number;
  querySeen: boolean;
  /** Names as on the wire, in lower case, without escapes: `nameLength(i)` bytes of `names` from `nameAt(i)` on. */
  readonly names: Uint8Array;
  /** Number of names on the chain, the asked one first; it is output even without a chain. */
  readonly chainLength: number;
  nameAt(position: number): number;
  nameLength(position: number): number;
  /** Version and four words of each address, and their TTLs. */
  readonly addressCount: number;
  readonly addresses: Int32Array;
  readonly ttls: Float64Array;
  /** A copy that stays valid. */
  make(): ListedAnswer;
}

class AnswerAtHand implements RawAnswer {
  version = 4;
  readonly ends = new Int32Array(8);
  clientPort = 0;
  serverPort = 0;
  querySeen = false;
  readonly names = dnsNames;
  readonly addresses = dnsAddresses;
  readonly ttls = dnsAddressTtls;

  /** Takes the answer in `dnsMessage`, sent by the source of `packet`. */
  take(packet: Packet, querySeen: boolean): void {
    const { ends } = this;
    this.version = packet.version;
    ends[0] = packet.target0;
    ends[1] = packet.target1;
    ends[2] = packet.target2;
    ends[3] = packet.target3;
    ends[4] = packet.source0;
    ends[5] = packet.source1;
    ends[6] = packet.source2;
    ends[7] = packet.source3;
    this.clientPort = packet.targetPort;
    this.serverPort = packet.sourcePort;
    this.querySeen = querySeen;
  }

  get chainLength(): number {
    return dnsMessage.chainLength;
  }

  get addressCount(): number {
    return dnsMessage.addressCount;
  }

  nameAt(position: number): number {
    return dnsChain[position]! * nameMax;
  }

  nameLength(position: number): number {
    return dnsNameLengths[dnsChain[position]!]!;
  }

  make(): ListedAnswer {
    const cnameChain = Array.from({ length: this.chainLength }, (_, i) => this.#name(i));
    const addresses = Array.from({ length: this.addressCount }, (_, i) => ({
      address: addressText(dnsAddresses[i * 5]!, dnsAddresses, i * 5 + 1),
      ttl: dnsAddressTtls[i]!,
    }));
    return {
      client: { ip: addressText(this.version, this.ends, 0), port: this.clientPort },
      server: { ip: addressText(this.version, this.ends, 4), port: this.serverPort },
      name: this.#name(0),
      cnameChain,
      addresses,
      querySeen: this.querySeen,
    };
  }

  /** Control characters, which a terminal would act on, are written as `\ddd`. */
  #name(position: number): string {
    const at = this.nameAt(position);
    let text = '';
    for (let i = at; i < at + this.nameLength(position); i += 1) {
      const byte = dnsNames[i]!;
      text += isPlainByte(byte) ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
    }
    return text;
  }
}

/** The single current answer. */
export const answerAtHand = new AnswerAtHand();

/** True for bytes of names that are shown unchanged. */
export function isPlainByte(byte: number): boolean {
  return byte > 0x20 && byte < 0x7f;
}

function addressText(version: number, words: Int32Array, at: number): string {
  return formatWords(version, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!);
}
