/** Pages that the links of a page lead to, on the same server: one of each kind, since ids, ranges and orders lead on for ever. */

/** `/servers/12?sort=name` and `/servers/13?sort=plan` are of one kind. */
function kindOf(url: URL): string {
  const path = url.pathname
    .split('/')
    .map((part) => (/\d/.test(part) ? '#' : part))
    .join('/');
  return `${path}?${[...url.searchParams.keys()].sort().join('&')}`;
}

export interface Follower {
  /** The next page to look at; null where there is none. */
  next(): string | null;
  /** Links of the page that was looked at. */
  found(hrefs: readonly string[], on: string): void;
}

/** Tables and documents as files, which a browser saves. */
const isFile = (url: URL) =>
  /\.(json|csv|pcap|zst|yaml)$/.test(url.pathname) || url.searchParams.has('format');

/** Begins with these pages; links to the paths `without` are not followed, such as the one that signs out. */
export function follow(urls: readonly string[], without: RegExp): Follower {
  const origin = new URL(urls[0]!).origin;
  const waiting: string[] = [];
  const seen = new Set<string>();
  const put = (href: string, isGiven = false) => {
    const url = new URL(href);
    url.hash = '';
    if (!isGiven && (url.origin !== origin || without.test(url.pathname) || isFile(url))) return;
    const kind = kindOf(url);
    if (!isGiven && seen.has(kind)) return;
    seen.add(kind);
    waiting.push(url.href);
  };
  for (const url of urls) put(url, true);
  return {
    next: () => waiting.shift() ?? null,
    found(hrefs, on) {
      // A page with a query is an order, range or filter of one that was followed.
      if (new URL(on).search !== '') return;
      for (const href of hrefs) put(href);
    },
  };
}
