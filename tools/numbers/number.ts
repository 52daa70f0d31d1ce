/** A number of the specification, where it stands in the code, and the test that shows it. */

/** A limit of the specification: a row of a table of its section 8, or a sentence of another section. */
export interface Limit {
  /** Of `rules.tsv`; `API-8` and `NET-8` are section 8. */
  rule: string;
  /** What the specification says; the cells of a row are separated by ` | `. */
  text: string;
  numbers: readonly SpecNumber[];
  /** Words of the text with a number that stands nowhere in the code, and why not. */
  elsewhere?: Readonly<Record<string, string>>;
}

export interface SpecNumber {
  /** The number as the text says it. Several entries may have the same words: the number stands in several places. */
  words: string;
  /** Subject of the sentence "… is 600 s". */
  what: string;
  /** In the unit of the code. */
  value: number;
  unit: string;
  file: string;
  /** Stands once in the file, with the number itself between « and ». */
  code: string;
  /** The test file that fails when the number is doubled, and when it is halved. */
  test: string;
}

const marked = /^([\s\S]*)«([^»]+)»([\s\S]*)$/;

/** The text of `code` as it stands in the file, and with another number. */
export function readCode(code: string): { text: string; number: string; with(value: number): string } {
  const [, before, number, after] = marked.exec(code)!;
  return {
    text: `${before}${number}${after}`,
    number: number!,
    with: (value) => `${before}${value}${after}`,
  };
}

/** The value of a number in code: a literal, or a product of literals and powers. */
export function evaluate(number: string): number {
  const factors = number.replaceAll('_', '').split(' * ');
  return factors.reduce((product, factor) => {
    const [base, exponent = '1'] = factor.split(' ** ');
    return product * Number(base) ** Number(exponent);
  }, 1);
}

const numberPattern =
  /(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty)\b/gi;

/** The numbers in a text, in digits or in words; none that is a part of a name, such as `avg10`. */
export const numbersIn = (text: string): string[] =>
  [...text.matchAll(numberPattern)].map(([number]) => number);
