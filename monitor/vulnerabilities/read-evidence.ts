/** Evidence of services from a CPE name, and from a file that nmap wrote with `-sV -oX`. */
import { SaxesParser } from 'saxes';
import { XmlCharacters } from '#common/xml-characters/index.ts';
import type { ServiceEvidence } from './identify-service.ts';
import { type CpeValue, parseCpe, parseCpeUri } from './matcher/cpe.ts';
import { products } from './products.ts';

/** A service at its port. */
export interface ServiceAt {
  address: string;
  transport: string;
  port: number;
  evidence: ServiceEvidence;
}

const textMax = 256;
const servicesMax = 100_000;

/** A name of the vulnerability database (2.3) or of nmap (2.2) as certain evidence; null when it is no name. */
export function readCpeEvidence(text: string): ServiceEvidence | null {
  const name = text.startsWith('cpe:2.3:') ? parseCpe(text) : parseCpeUri(text);
  if (!name) return null;
  const product = products.find(({ names, scanNames }) =>
    [...names, ...scanNames].some(
      ([vendor, title]) => textOf(name.vendor) === vendor && textOf(name.product) === title,
    ),
  );
  const isApplication = textOf(name.part) === 'a';
  const [vendor, title] = product?.scanNames[0] ?? ['unknown', 'unknown'];
  return {
    product: null,
    version: name.version.is === 'pattern' ? '*' : joined(name.version, name.update),
    extraInfo: null,
    method: 'stated',
    confidence: 10,
    cpe: isApplication ? [`cpe:/a:${vendor}:${title}`] : [],
  };
}

const textOf = (value: CpeValue) => (value.is === 'text' ? value.text : null);

function joined(version: CpeValue, update: CpeValue): string | null {
  const own = textOf(version);
  return own === null ? null : `${own}${textOf(update) ?? ''}`;
}

/**
 * Open ports (1 to 65535) with what they said of themselves, by address. Entities are never expanded. Characters that XML
 * forbids, which servers sent and nmap wrote, are replaced; `onReplaced` gets their number. Throws an `Error` for a file that is
 * no well-formed output of nmap otherwise.
 */
export function readNmapEvidence(xml: string, onReplaced: (count: number) => void = () => {}): ServiceAt[] {
  const found: ServiceAt[] = [];
  const parser = new SaxesParser({ fragment: false });
  const path: string[] = [];
  let address = '';
  let port: { transport: string; number: number; isOpen: boolean } | null = null;
  let service: Record<string, string> = {};
  let cpe: string[] = [];
  let text = '';
  parser.on('error', (error) => {
    throw error;
  });
  parser.on('opentag', ({ name, attributes }) => {
    const of = attributes as Record<string, string>;
    path.push(name);
    if (path.length > 32) throw new Error('nested too deeply');
    if (path.length === 1 && name !== 'nmaprun') throw new Error('the document is none of nmap');
    if (name === 'host') address = '';
    else if (name === 'address' && of.addrtype !== 'mac') address ||= clean(of.addr) ?? '';
    else if (name === 'port') {
      port = { transport: of.protocol ?? '', number: Number(of.portid), isOpen: false };
      [service, cpe] = [{}, []];
    } else if (name === 'state' && port) port.isOpen = of.state === 'open';
    else if (name === 'service') service = of;
    else if (name === 'cpe') text = '';
  });
  parser.on('text', (piece) => {
    if (path.at(-1) === 'cpe' && text.length <= textMax) text += piece;
  });
  parser.on('closetag', ({ name }) => {
    path.pop();
    if (name === 'cpe' && port && cpe.length < 8) cpe.push(text.slice(0, textMax));
    if (name !== 'port' || !port) return;
    if (port.isOpen && isPort(port.number) && found.length < servicesMax)
      found.push({
        address,
        transport: port.transport,
        port: port.number,
        evidence: toEvidence(service, cpe),
      });
    port = null;
  });
  const characters = new XmlCharacters();
  parser.write(characters.clean(xml)).write(characters.rest()).close();
  if (characters.replaced > 0) onReplaced(characters.replaced);
  return found;
}

/** As in scans of sensors: 0 is reserved, and no service is there. */
const isPort = (number: number) => Number.isInteger(number) && number >= 1 && number <= 65_535;

function toEvidence(service: Record<string, string>, cpe: readonly string[]): ServiceEvidence {
  return {
    product: clean(service.product),
    version: clean(service.version),
    extraInfo: clean(service.extrainfo),
    method: service.method === 'probed' ? 'probed' : 'table',
    confidence: /^\d{1,2}$/.test(service.conf ?? '') ? Number(service.conf) : 0,
    cpe: [...cpe],
  };
}

/** Text of a stranger as one bounded line; null when nothing is left. */
function clean(text: string | undefined): string | null {
  const line = (text ?? '')
    .slice(0, textMax)
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  return line === '' ? null : line;
}
