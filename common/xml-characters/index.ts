/**
 * Replaces what XML 1.0 forbids, so that a parser that ends at the first fault goes on behind it.
 *
 * nmap writes the bytes that a server sent as they are, also as references to characters that no document may hold, such as
 * `&#x1;`. Each becomes U+FFFD, and is counted.
 */
const replacement = '\ufffd';
const forbiddenCharacters = '\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\ufffe\\uffff\\p{Surrogate}';
const forbidden = new RegExp(`&#(x[0-9a-fA-F]{1,24}|[0-9]{1,24});|[${forbiddenCharacters}]`, 'gu');
/** A reference, or a pair of surrogates, that the next piece may complete. */
const incomplete = /&(#(x[0-9a-fA-F]{0,24}|[0-9]{0,24}))?$|[\ud800-\udbff]$/;

export class XmlCharacters {
  /** How many were replaced so far. */
  replaced = 0;
  #held = '';

  /** The next piece of a document; what the piece after it may complete comes with that one. */
  clean(piece: string): string {
    const text = this.#held + piece;
    this.#held = incomplete.exec(text)?.[0] ?? '';
    return this.#replace(text.slice(0, text.length - this.#held.length));
  }

  /** What was held back of the last piece. */
  rest(): string {
    const text = this.#held;
    this.#held = '';
    return this.#replace(text);
  }

  #replace(text: string): string {
    return text.replace(forbidden, (found, reference: string | undefined) => {
      if (reference !== undefined && isAllowed(codeOf(reference))) return found;
      this.replaced += 1;
      return replacement;
    });
  }
}

const codeOf = (reference: string) =>
  reference.startsWith('x') ? Number.parseInt(reference.slice(1), 16) : Number(reference);

/** XML 1.0, production 2. */
function isAllowed(code: number): boolean {
  if (code < 0x20) return code === 0x9 || code === 0xa || code === 0xd;
  return code <= 0xd7ff || (code >= 0xe000 && code <= 0xfffd) || (code >= 0x10000 && code <= 0x10ffff);
}
