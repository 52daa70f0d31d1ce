/**
 * DNS answers as JSON with separators, in the order of arrival: in memory first, in the page file when there are many.
 */
import {
  isPlainByte,
  type ListedAnswer,
  type PageFile,
  pageBytes,
  type RawAnswer,
} from '#sensor/capture/index.ts';
import { JsonBytes, jsonText } from './json-bytes.ts';

const residentPagesMax = 64;

const text = {
  separator: jsonText(',\n  '),
  client: jsonText('{"client":{"ip":"'),
  port: jsonText('","port":'),
  server: jsonText('},"server":{"ip":"'),
  name: jsonText('},"name":"'),
  chain: jsonText('","cname_chain":['),
  addresses: jsonText('],"addresses":['),
  address: jsonText('{"address":"'),
  ttl: jsonText('","ttl":'),
  end: jsonText('],"query_seen":'),
  comma: jsonText(','),
  quote: jsonText('"'),
  brace: jsonText('}'),
};
const quoteByte = 0x22;
const backslash = 0x5c;

export class AnswerLog {
  count = 0;
  readonly #file: PageFile;
  readonly #resident: Uint8Array[] = [];
  readonly #stored: number[] = [];
  readonly #json = new JsonBytes((bytes) => this.#take(bytes));
  #open = new Uint8Array(0);
  #openLength = 0;

  readonly #keptMax: number;

  /** The first `keptMax` answers are kept; the others are counted. */
  constructor(file: PageFile, keptMax: number) {
    this.#file = file;
    this.#keptMax = keptMax;
  }

  add(answer: RawAnswer): void {
    this.count += 1;
    if (this.count > this.#keptMax) return;
    if (this.count > 1) this.#json.put(text.separator);
    writeAnswer(this.#json, answer);
  }

  /** All written bytes, in pieces of any boundaries; each piece is valid until the next. */
  *pieces(): Generator<Uint8Array> {
    this.#json.flush();
    yield* this.#resident;
    const page = new Uint8Array(pageBytes);
    for (const number of this.#stored) {
      this.#file.read(number, page);
      yield page;
    }
    yield this.#open.subarray(0, this.#openLength);
  }

  /** Parses every answer again. */
  *answers(): Generator<ListedAnswer> {
    let rest = '';
    for (const piece of this.pieces()) {
      const lines = (rest + Buffer.from(piece).toString('latin1')).split(',\n');
      rest = lines.pop()!;
      for (const line of lines) yield toAnswer(JSON.parse(line));
    }
    if (rest !== '') yield toAnswer(JSON.parse(rest));
  }

  #take(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#openLength === this.#open.length) this.#turnPage();
      const part = bytes.subarray(at, at + this.#open.length - this.#openLength);
      this.#open.set(part, this.#openLength);
      this.#openLength += part.length;
      at += part.length;
    }
  }

  #turnPage(): void {
    if (this.#openLength > 0 && this.#resident.length >= residentPagesMax)
      this.#stored.push(this.#file.write(this.#open));
    else {
      if (this.#openLength > 0) this.#resident.push(this.#open);
      this.#open = new Uint8Array(pageBytes);
    }
    this.#openLength = 0;
  }
}

interface AnswerJson extends Pick<ListedAnswer, 'client' | 'server' | 'name' | 'addresses'> {
  cname_chain: string[];
  query_seen: boolean;
}

function toAnswer({ client, server, name, addresses, ...rest }: AnswerJson): ListedAnswer {
  return { client, server, name, addresses, cnameChain: rest.cname_chain, querySeen: rest.query_seen };
}

function writeAnswer(json: JsonBytes, answer: RawAnswer): void {
  const { version, ends, chainLength, addressCount, addresses, ttls } = answer;
  json.put(text.client).address(version, ends, 0).put(text.port).number(answer.clientPort);
  json.put(text.server).address(version, ends, 4).put(text.port).number(answer.serverPort);
  json.put(text.name);
  writeName(json, answer, 0);
  json.put(text.chain);
  for (let i = 0; i < chainLength; i += 1) {
    if (i > 0) json.put(text.comma);
    json.put(text.quote);
    writeName(json, answer, i);
    json.put(text.quote);
  }
  json.put(text.addresses);
  for (let i = 0; i < addressCount; i += 1) {
    if (i > 0) json.put(text.comma);
    json.put(text.address).address(addresses[i * 5]!, addresses, i * 5 + 1);
    json.put(text.ttl).number(ttls[i]!).put(text.brace);
    json.endRow();
  }
  json
    .put(text.end)
    .ascii(answer.querySeen ? 'true' : 'false')
    .put(text.brace);
  json.endRow();
}

/** As in the JSON text of a name: the backslash of a `\ddd` is escaped, like a quote. */
function writeName(json: JsonBytes, answer: RawAnswer, position: number): void {
  const { names } = answer;
  const from = answer.nameAt(position);
  const until = from + answer.nameLength(position);
  for (let i = from; i < until; i += 1) {
    const byte = names[i]!;
    if (!isPlainByte(byte)) json.ascii(`\\\\${String(byte).padStart(3, '0')}`);
    else {
      if (byte === quoteByte || byte === backslash) json.byte(backslash);
      json.byte(byte);
    }
  }
  json.endRow();
}
