/**
 * JSON as an API should read it: duplicate names in one object are refused, because two readers would pick different
 * ones, and so are `__proto__` and nesting beyond a bound.
 *
 * The text is parsed by `JSON.parse`; a scan beside it finds what `JSON.parse` lets pass.
 */
const depthMax = 32;

/** Parses strictly; throws a `SyntaxError` whose message is fit for the caller. */
export function parseStrictJson(text: string): unknown {
  refuseAmbiguity(text);
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError('The body is not valid JSON.');
  }
}

function refuseAmbiguity(text: string): void {
  // One set of names for each open object, null for each open array.
  const open: (Set<string> | null)[] = [];
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (character === '{' || character === '[') {
      open.push(character === '{' ? new Set() : null);
      if (open.length > depthMax) throw new SyntaxError(`The body is nested deeper than ${depthMax} levels.`);
    } else if (character === '}' || character === ']') {
      open.pop();
    } else if (character === '"') {
      const end = endOfString(text, i);
      const names = open.at(-1);
      if (names && isName(text, end)) rememberName(names, text.slice(i, end + 1));
      i = end;
    }
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
}
