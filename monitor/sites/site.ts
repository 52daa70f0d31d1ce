import { CodedError } from '#common/errors/index.ts';
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { oneLine } from '#common/text/index.ts';

/** Local prefixes of one site (NET-8). */
export const localCidrsMax = 128;
const nameLengthMax = 80;

/** A site's name, trimmed. */
export function parseSiteName(text: string): string {
  const name = oneLine(text);
  if (name.length === 0 || name.length > nameLengthMax) {
    throw new CodedError('sites.invalid', `A site's name has 1 to ${nameLengthMax} characters.`);
  }
  return name;
}

/** Canonical, sorted, distinct prefixes. The error lists every invalid text. */
export function parseLocalCidrs(texts: readonly string[]): string[] {
  const faults: string[] = [];
  const found = new Set<string>();
  for (const text of texts) {
    const prefix = parsePrefix(text.trim());
    if (prefix) found.add(formatPrefix(prefix));
    else faults.push(text.trim());
  }
  if (faults.length > 0) {
    throw new CodedError(
      'sites.invalid',
      `Not a prefix: ${faults.slice(0, 5).join(', ')}. Write address/length with the host bits zero, such as 192.0.2.0/24 or 2001:db8::/48.`,
    );
  }
  if (found.size > localCidrsMax) {
    throw new CodedError(
      'sites.invalid',
      `A site has at most ${localCidrsMax} local prefixes, not ${found.size}.`,
    );
  }
  return [...found].sort();
}
