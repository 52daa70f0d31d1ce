/**
 * DNS answers as lines of JSON, in the order in which they came: in memory first, in the page file when they are many.
 */
import { type ListedAnswer, type PageFile, pageBytes } from '#sensor/capture/index.ts';

const residentPagesMax = 64;

export class AnswerLog {
  count = 0;
  readonly #file: PageFile;
  readonly #resident: string[] = [];
  readonly #stored: number[] = [];
  #open: string[] = [];
  #openLength = 0;

  readonly #keptMax: number;

  /** Only the first `keptMax` are kept, the others counted. */
  constructor(file: PageFile, keptMax: number) {
    this.#file = file;
    this.#keptMax = keptMax;
  }

  /** Names and addresses are ASCII, so that a character is a byte. */
  add(make: () => ListedAnswer): void {
    this.count += 1;
    if (this.count > this.#keptMax) return;
    const line = answerJson(make());
    this.#open.push(line);
    this.#openLength += line.length + 1;
    if (this.#openLength >= pageBytes) this.#closePages();
  }

  /** The lines in pieces of some thousand, each with its line feed. */
  *pieces(): Generator<string> {
    yield* this.#resident;
    const page = new Uint8Array(pageBytes);
    for (const number of this.#stored) {
      this.#file.read(number, page);
      yield Buffer.from(page.buffer).toString('latin1');
    }
    yield this.#open.map((line) => `${line}\n`).join('');
  }

  /** Every answer again. */
  *answers(): Generator<ListedAnswer> {
    let rest = '';
    for (const piece of this.pieces()) {
      const lines = (rest + piece).split('\n');
      rest = lines.pop()!;
      for (const line of lines) yield toAnswer(JSON.parse(line));
    }
  }

  #closePages(): void {
    let text = this.#open.map((line) => `${line}\n`).join('');
    while (text.length >= pageBytes) {
      const page = text.slice(0, pageBytes);
      if (this.#resident.length < residentPagesMax) this.#resident.push(page);
      else this.#stored.push(this.#file.write(Buffer.from(page, 'latin1')));
      text = text.slice(pageBytes);
    }
    // What is left ends with the line feed that joining adds again.
    this.#open = text === '' ? [] : [text.slice(0, -1)];
    this.#openLength = text.length;
  }
}

interface AnswerJson extends Pick<ListedAnswer, 'client' | 'server' | 'name' | 'addresses'> {
  cname_chain: string[];
  query_seen: boolean;
}

function answerJson(answer: ListedAnswer): string {
  const fields: AnswerJson = {
    client: answer.client,
    server: answer.server,
    name: answer.name,
    cname_chain: answer.cnameChain,
    addresses: answer.addresses,
    query_seen: answer.querySeen,
  };
  return JSON.stringify(fields);
}

function toAnswer({ client, server, name, addresses, ...rest }: AnswerJson): ListedAnswer {
  return { client, server, name, addresses, cnameChain: rest.cname_chain, querySeen: rest.query_seen };
}
