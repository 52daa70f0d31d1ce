/**
 * Reads nmap's XML as it comes.
 *
 * Servers wrote parts of it: their answers are bounded and cleaned, entities of a document type are never expanded, and
 * nothing is fetched. A character that XML forbids is replaced. What else is no well-formed document is no finished run; what was
 * read before stays. Only `state="open"` is open (NET-2.7.5).
 */
import { SaxesParser } from 'saxes';
import { XmlCharacters } from '#common/xml-characters/index.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';

/** Output of one run that is read; more is refused (NET-8.3). */
export const outputBytesMax = 8 * 1024 * 1024;
const textMax = 256;
const tunnelMax = 16;
const cpesMax = 4;

/** An open port, and what nmap knows of its service. */
export interface ReportedPort {
  transport: ScanTransport;
  port: number;
  service: string | null;
  product: string | null;
  version: string | null;
  extraInfo: string | null;
  method: 'probed' | 'table';
  confidence: number;
  tunnel: string | null;
  cpe: string[];
}

/** What one run says of one transport. */
export interface NmapReport {
  open: ReportedPort[];
  /** Ports asked for. */
  asked: number;
  /** Ports that answered: open, or closed by a reset or an ICMP message. */
  answered: number;
  /** Ports that a firewall refused, and ports that no answer came from. */
  filtered: number;
  silent: number;
  /** The run ended by itself, and each port it was asked for has a state. */
  isFinished: boolean;
  /** The run ended by itself without asking a port: nothing has the address on its link, by ARP or neighbour discovery. */
  isHostDown: boolean;
  /** Characters of servers' answers that XML forbids; each was replaced. */
  replaced: number;
}

type Attributes = Record<string, string>;

/** Creates a reader of a run for one transport. `onPercent`: progress of its present task. */
export function createNmapXmlReader(
  transport: ScanTransport,
  onPercent: (percent: number) => void = () => {},
) {
  const document = new NmapDocument(transport, onPercent);
  return {
    /** Takes the next piece; the first one after a fault and later ones are ignored. */
    write: (text: string) => document.write(text),
    /** Whether the document is still well formed. */
    isWellFormed: () => document.isWellFormed,
    /** Call it after the last piece. */
    report: () => document.report(),
  };
}

class NmapDocument {
  isWellFormed = true;
  readonly #transport: ScanTransport;
  readonly #onPercent: (percent: number) => void;
  readonly #parser = new SaxesParser({ fragment: false });
  readonly #characters = new XmlCharacters();
  readonly #open = new Map<number, ReportedPort>();
  readonly #seen = new Set<number>();
  #asked = 0;
  #answered = 0;
  #filtered = 0;
  #silent = 0;
  #hosts = 0;
  #endedHosts = 0;
  #isSuccess = false;
  #hostsUp: number | null = null;
  #isOver = false;
  /** The open elements; a service of a port counts only where nmap puts it. */
  readonly #path: string[] = [];
  #port = 0;
  #isPortOpen = false;
  #service: Attributes | null = null;
  #cpes: string[] = [];
  #text = '';
  #extraState: string | null = null;
  #extraLeft = 0;

  constructor(transport: ScanTransport, onPercent: (percent: number) => void) {
    this.#transport = transport;
    this.#onPercent = onPercent;
    const parser = this.#parser;
    parser.on('error', (error) => {
      throw error;
    });
    // `fragment: false` and no namespaces: attributes are plain texts.
    parser.on('opentag', (tag) => this.#begin(tag.name, tag.attributes as Attributes));
    parser.on('text', (text) => {
      if (this.#path.at(-1) === 'cpe' && this.#text.length <= textMax) this.#text += text;
    });
    parser.on('closetag', (tag) => this.#finish(tag.name));
  }

  write(text: string): void {
    if (!this.isWellFormed) return;
    try {
      this.#parser.write(this.#characters.clean(text));
    } catch {
      this.isWellFormed = false;
    }
  }

  report(): NmapReport {
    if (this.isWellFormed) {
      try {
        this.#parser.write(this.#characters.rest()).close();
      } catch {
        this.isWellFormed = false;
      }
    }
    const counted = this.#answered + this.#filtered + this.#silent;
    const isFinished =
      this.isWellFormed &&
      this.#isOver &&
      this.#isSuccess &&
      this.#hosts === 1 &&
      this.#endedHosts === 1 &&
      this.#asked > 0 &&
      counted === this.#asked;
    return {
      open: [...this.#open.values()].sort((a, b) => a.port - b.port),
      asked: this.#asked,
      answered: this.#answered,
      filtered: this.#filtered,
      silent: this.#silent,
      isFinished,
      isHostDown: this.isWellFormed && this.#isSuccess && this.#hostsUp === 0,
      replaced: this.#characters.replaced,
    };
  }

  #begin(name: string, attributes: Attributes): void {
    const parent = this.#path.join('/');
    this.#path.push(name);
    if (this.#path.length > 32) throw new Error('nested too deeply');
    if (parent === 'nmaprun') this.#beginOfRun(name, attributes);
    else if (parent === 'nmaprun/runstats' && name === 'finished')
      this.#isSuccess = attributes.exit === 'success';
    else if (parent === 'nmaprun/runstats' && name === 'hosts') this.#hostsUp = countOf(attributes.up);
    else if (parent === 'nmaprun/host/ports' && name === 'port') this.#beginPort(attributes);
    else if (parent === 'nmaprun/host/ports' && name === 'extraports') this.#beginExtra(attributes);
    else if (parent === 'nmaprun/host/ports/extraports' && name === 'extrareasons')
      this.#countReason(attributes);
    else if (parent === 'nmaprun/host/ports/port') this.#beginOfPort(name, attributes);
    else if (name === 'cpe') this.#text = '';
  }

  #beginOfRun(name: string, attributes: Attributes): void {
    if (name === 'scaninfo' && attributes.protocol === this.#transport)
      this.#asked = countOf(attributes.numservices);
    else if (name === 'host') {
      this.#hosts += 1;
      if (countOf(attributes.endtime) > 0) this.#endedHosts += 1;
    } else if (name === 'taskprogress') {
      const percent = Number(attributes.percent);
      if (percent >= 0 && percent <= 100) this.#onPercent(percent);
    }
  }

  #beginPort(attributes: Attributes): void {
    const port = countOf(attributes.portid);
    this.#port =
      attributes.protocol === this.#transport && port >= 1 && port <= 65_535 && !this.#seen.has(port)
        ? port
        : 0;
    if (this.#port > 0) this.#seen.add(this.#port);
    this.#isPortOpen = false;
    this.#service = null;
    this.#cpes = [];
  }

  #beginOfPort(name: string, attributes: Attributes): void {
    if (this.#port === 0) return;
    if (name === 'state') {
      this.#isPortOpen = attributes.state === 'open';
      this.#count(attributes.state ?? '', attributes.reason ?? '', 1);
    } else if (name === 'service') this.#service = attributes;
  }

  /** Ports that nmap sums up, by state and then by reason. */
  #beginExtra(attributes: Attributes): void {
    this.#extraState = attributes.state ?? '';
    this.#extraLeft = countOf(attributes.count);
  }

  #countReason(attributes: Attributes): void {
    if ((attributes.proto ?? this.#transport) !== this.#transport) return;
    const count = Math.min(countOf(attributes.count), this.#extraLeft);
    this.#extraLeft -= count;
    this.#count(this.#extraState ?? '', attributes.reason ?? '', count);
  }

  #count(state: string, reason: string, count: number): void {
    if (state === 'open' || state === 'closed') this.#answered += count;
    else if (reason.startsWith('no-response')) this.#silent += count;
    else this.#filtered += count;
  }

  #finish(name: string): void {
    this.#path.pop();
    const parent = this.#path.join('/');
    if (name === 'nmaprun' && parent === '') this.#isOver = true;
    else if (name === 'extraports') this.#finishExtra();
    else if (parent === 'nmaprun/host/ports' && name === 'port') this.#finishPort();
    else if (parent === 'nmaprun/host/ports/port/service' && name === 'cpe') {
      const cpe = cleanText(this.#text, textMax);
      if (cpe?.startsWith('cpe:/') && this.#cpes.length < cpesMax) this.#cpes.push(cpe);
    }
  }

  #finishExtra(): void {
    if (this.#extraLeft > 0) this.#count(this.#extraState ?? '', '', this.#extraLeft);
    this.#extraState = null;
    this.#extraLeft = 0;
  }

  #finishPort(): void {
    const port = this.#port;
    this.#port = 0;
    if (port === 0 || !this.#isPortOpen) return;
    const { name, product, version, extrainfo, method, conf, tunnel } = this.#service ?? {};
    // A name from nmap's table says which service usually has this port, not what answered.
    const isProbed = method === 'probed';
    this.#open.set(port, {
      transport: this.#transport,
      port,
      service: cleanText(name, textMax),
      product: isProbed ? cleanText(product, textMax) : null,
      version: isProbed ? cleanText(version, textMax) : null,
      extraInfo: isProbed ? cleanText(extrainfo, textMax) : null,
      method: isProbed ? 'probed' : 'table',
      confidence: Math.min(countOf(conf), 10),
      tunnel: isProbed ? cleanText(tunnel, tunnelMax) : null,
      cpe: isProbed ? this.#cpes : [],
    });
  }
}

function countOf(text: string | undefined): number {
  return text !== undefined && /^\d{1,10}$/.test(text) ? Number(text) : 0;
}

/** Text of a stranger: one line without control, format and lone surrogate characters, bounded; null when nothing is left. */
function cleanText(text: string | undefined, lengthMax: number): string | null {
  const line = (text ?? '')
    .slice(0, 4 * lengthMax)
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  // A cut in the middle of a pair of surrogates would leave a half.
  const cut = line
    .slice(0, lengthMax)
    .replace(/[\ud800-\udbff]$/, '')
    .trimEnd();
  return cut === '' ? null : cut;
}
