/**
 * JSON as an API should read it: duplicate names in one object are refused, because two readers would pick different
 * ones, and so are `__proto__`, nesting beyond a bound, and more values, or more names in one object, than any body of ours
 * holds: two bytes of text can become an object of fifty, and a validator looks at each unknown name several times.
 *
 * The text is parsed by `JSON.parse`; a scan beside it finds what `JSON.parse` lets pass.
 */
const depthMax = 32;
/** Values of a body; the largest that our contracts allow has some 350,000. */
const valuesMax = 500_000;
/** Names of one object; our contracts have objects of some twenty fields. */
const namesMax = 1000;

/** Parses strictly; throws a `SyntaxError` whose message is fit for the caller. */
export function parseStrictJson(text: string): unknown {
  refuseAmbiguity(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError('The body is not valid JSON.');
  }
}

/** A body as it was sent: UTF-8, with or without a byte order mark. Throws as `parseStrictJson` does. */
export function parseJsonBody(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new SyntaxError('The body is not valid UTF-8.');
  }
  return parseStrictJson(text);
}

function refuseAmbiguity(text: string): void {
  // The names of each open object, undefined before its first; null for each open array.
  const open: (Set<string> | null | undefined)[] = [];
  let values = 1;
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (character === '{' || character === '[') {
      open.push(character === '{' ? undefined : null);
      values += 1;
      if (open.length > depthMax) throw new SyntaxError(`The body is nested deeper than ${depthMax} levels.`);
    } else if (character === '}' || character === ']') {
      open.pop();
    } else if (character === ',') {
      values += 1;
    } else if (character === '"') {
      const end = endOfString(text, i);
      const names = open.at(-1);
      if (names !== null && open.length > 0 && isName(text, end)) {
        const known = names ?? new Set<string>();
        open[open.length - 1] = known;
        rememberName(known, text.slice(i, end + 1));
      }
      i = end;
    }
    if (values > valuesMax) throw new SyntaxError(`The body holds more than ${valuesMax} values.`);
  }
}

function endOfString(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i += 1) {
    if (text[i] === '\\') i += 1;
    else if (text[i] === '"') return i;
  }
  throw new SyntaxError('The body is not valid JSON.');
}

function isName(text: string, endOfText: number): boolean {
  let i = endOfText + 1;
  while (text[i] === ' ' || text[i] === '\n' || text[i] === '\r' || text[i] === '\t') i += 1;
  return text[i] === ':';
}

function rememberName(names: Set<string>, quoted: string): void {
  let name: string;
  try {
    name = JSON.parse(quoted) as string;
  } catch {
    throw new SyntaxError('The body is not valid JSON.');
  }
  if (names.has(name)) throw new SyntaxError(`The name ${JSON.stringify(name)} appears twice in one object.`);
  if (name === '__proto__') throw new SyntaxError('The name "__proto__" is not allowed.');
  names.add(name);
  if (names.size > namesMax) throw new SyntaxError(`An object of the body has more than ${namesMax} names.`);
}
