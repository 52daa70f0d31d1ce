/**
 * Statements for ClickHouse, put together of parts. Every value is a parameter of the server (`{p1:UInt32}`): no input ever
 * becomes text of a statement.
 */

type ParameterType = 'UInt8' | 'UInt16' | 'UInt32' | 'String';

/** A value, or a list of values, of one statement. */
interface Parameter {
  type: ParameterType | `Array(${ParameterType})`;
  value: number | string | readonly number[] | readonly string[];
}

/** A part of a statement. */
export class Fragment {
  readonly strings: readonly string[];
  readonly values: readonly (Fragment | Parameter)[];
  constructor(strings: readonly string[], values: readonly (Fragment | Parameter)[]) {
    this.strings = strings;
    this.values = values;
  }
}

/** A part of a statement, in which `${}` holds other parts and parameters. */
export function ch(strings: TemplateStringsArray, ...values: (Fragment | Parameter)[]): Fragment {
  return new Fragment(strings, values);
}

/** Text of the program's own, such as a column's name; never input. */
export const plain = (text: string): Fragment => new Fragment([text], []);

/** Parts one after the other. */
export function joined(parts: readonly Fragment[], separator: string): Fragment {
  if (parts.length === 0) return plain('');
  return new Fragment(['', ...parts.slice(1).map(() => separator), ''], parts);
}

const secondMax = 4_294_967_295;

export const number = (value: number, type: Exclude<ParameterType, 'String'> = 'UInt32'): Parameter => ({
  type,
  value,
});
export const numbers = (
  value: readonly number[],
  type: Exclude<ParameterType, 'String'> = 'UInt32',
): Parameter => ({ type: `Array(${type})`, value });
export const text = (value: string): Parameter => ({ type: 'String', value });
export const texts = (value: readonly string[]): Parameter => ({ type: 'Array(String)', value });

/** A second of time as a column of the tables holds it; times out of its range become its ends. */
export const second = (value: number): Fragment => ch`toDateTime(${number(clampSecond(value))}, 'UTC')`;
/** The same of several, as plain numbers. */
export const seconds = (values: readonly number[]): Parameter => numbers(values.map(clampSecond));

const clampSecond = (value: number) => Math.min(Math.max(Math.floor(value), 0), secondMax);

export interface Statement {
  query: string;
  parameters: Record<string, Parameter['value']>;
}

/** The text of a statement with the values of its parameters. */
export function toStatement(fragment: Fragment): Statement {
  const parameters: Statement['parameters'] = {};
  let count = 0;
  const write = (part: Fragment): string =>
    part.strings
      .map((piece, i) => {
        if (i === 0) return piece;
        const value = part.values[i - 1]!;
        if (value instanceof Fragment) return write(value) + piece;
        count += 1;
        parameters[`p${count}`] = value.value;
        return `{p${count}:${value.type}}${piece}`;
      })
      .join('');
  return { query: write(fragment), parameters };
}
