/**
 * Which product and version a scan's evidence names, or why that can't be known (NET-2.6.2).
 *
 * A distribution keeps the version of a package and mends its faults, so a version that names a package says nothing about
 * faults: such a service is never assessed as its original.
 */

import type { UnableReason } from '#contracts/findings.ts';
import { type CpeValue, matchesText, parseCpeUri } from './matcher/cpe.ts';
import type { KnownService } from './matcher/match-criterion.ts';
import { parseVersion } from './matcher/version.ts';
import { originalPlatforms, packageMarks, packagingVendors, unmarkedPackages } from './package-marks.ts';
import { readRevision } from './packages/compare-revisions.ts';
import { type Product, products } from './products.ts';

/** What a scan knows of a service, as sensors report it. `stated`: a person names product and version, which are no banner. */
export interface ServiceEvidence {
  product: string | null;
  version: string | null;
  extraInfo: string | null;
  method: 'probed' | 'table' | 'stated';
  /** nmap's, 0 to 10. */
  confidence: number;
  /** CPE 2.2 names. */
  cpe: readonly string[];
}

export interface Identification {
  product: Product | null;
  /** The original's version; of a package too, where it can be read. */
  service: KnownService | null;
  reason: UnableReason | null;
}

const confidenceMin = 10;

/** Whether the evidence shows a package of a distribution or a hosting panel. */
export function hasPackageMark(evidence: ServiceEvidence): boolean {
  const { version, extraInfo, cpe } = evidence;
  const text = `${version ?? ''} ${extraInfo ?? ''}`;
  if (packageMarks.some(({ pattern }) => pattern.test(text))) return true;
  const isOfPackager = cpe.some((uri) => {
    const name = parseCpeUri(uri);
    return name?.part.is === 'text' && name.part.text === 'o' && packagingVendors.has(textOf(name.vendor));
  });
  return isOfPackager || isBuiltByPackager(evidence);
}

/** Whether a banner shows what its original never does, or a version that may as well be a package's. */
function isBuiltByPackager(evidence: ServiceEvidence): boolean {
  if (evidence.method === 'stated') return false;
  const product = findProduct(evidence);
  if (product === null || product === 'ambiguous') return false;
  if (unmarkedPackages[product.key]?.versions.test(evidence.version?.trim() ?? '')) return true;
  // The banner of the original has no level of the portable release: `OpenSSH_9.2`, of packages `OpenSSH_9.2p1`.
  if (product.key === 'openssh') return /^\d+(\.\d+)+p\d/i.test(evidence.version ?? '');
  if (product.key !== 'httpd') return false;
  const platform = /^\s*\(([^)]*)\)/.exec(evidence.extraInfo ?? '')?.[1];
  return platform !== undefined && !originalPlatforms.has(platform.trim().toLowerCase());
}

const textOf = (value: CpeValue) => (value.is === 'text' ? value.text : '');

export function identifyService(evidence: ServiceEvidence): Identification {
  if (evidence.method === 'table') return unable('not_probed');
  if (evidence.confidence < confidenceMin) return unable('low_confidence');
  const product = findProduct(evidence);
  if (product === 'ambiguous') return unable('ambiguous_product');
  if (product === null) return unable('unknown_product');
  if (isOfPart(evidence, product)) return unable('ambiguous_version', product);
  const { version: text } = evidence;
  if (text === null || text.trim() === '') return unable('no_version', product);
  if (hasPackageMark(evidence)) {
    return { product, service: readUpstream(product, text), reason: 'distribution_package' };
  }
  const version = parseVersion(product.scheme, text.trim());
  if (!version || contradicts(evidence, product, text.trim())) return unable('ambiguous_version', product);
  if (version.numbers.length < product.numbersMin) return unable('incomplete_version', product);
  return { product, service: { product, version }, reason: null };
}

function unable(reason: UnableReason, product: Product | null = null): Identification {
  return { product, service: null, reason };
}

/** By the CPE names of the scan; by the product's title where it has none of an application. */
function findProduct({ product, version, cpe }: ServiceEvidence): Product | 'ambiguous' | null {
  const names = cpe.map(parseCpeUri).filter((name) => name !== null && matchesText(name.part, 'a'));
  const named = products.filter(({ scanNames }) =>
    names.some((name) =>
      scanNames.some(([vendor, own]) => isText(name!.vendor, vendor) && isText(name!.product, own)),
    ),
  );
  const title = product?.trim().toLowerCase() ?? '';
  const found = names.length > 0 ? named : products.filter(({ scanTitles }) => scanTitles.includes(title));
  if (found.length > 1) return 'ambiguous';
  // Old probes of nmap call MariaDB MySQL; the version does not.
  if (found[0]?.key === 'mysql' && /mariadb/i.test(version ?? ''))
    return products.find(({ key }) => key === 'mariadb') ?? null;
  return found[0] ?? null;
}

/**
 * Whether a scan's title names a part or a variant of the product, whose version is not the product's: nmap gives the version of
 * "ProFTPD mod_sftp" and "MySQL instance manager" with the CPE name of the server.
 */
function isOfPart({ product: title }: ServiceEvidence, { key, scanTitles }: Product): boolean {
  const text = title?.trim().toLowerCase() ?? '';
  return text !== '' && !scanTitles.includes(text) && !(key === 'mariadb' && text === 'mysql');
}

const isText = (value: Parameters<typeof matchesText>[0], text: string) =>
  value.is === 'text' && value.text === text;

/** A CPE of the same product with another version. */
function contradicts({ cpe }: ServiceEvidence, product: Product, text: string): boolean {
  const own = JSON.stringify(parseVersion(product.scheme, text));
  return cpe.some((uri) => {
    const name = parseCpeUri(uri);
    if (name?.version.is !== 'text' || !matchesText(name.part, 'a')) return false;
    const isOwn = product.scanNames.some(
      ([vendor, title]) => isText(name.vendor, vendor) && isText(name.product, title),
    );
    const update = name.update.is === 'text' ? name.update.text : '';
    return isOwn && JSON.stringify(parseVersion(product.scheme, name.version.text, update)) !== own;
  });
}

/** The version of the original that a package was made of: what comes before the package's own part. */
function readUpstream(product: Product, text: string): KnownService | null {
  const original = /^(?:5\.5\.5-(?=1[01]\.))?([0-9][0-9a-z.]*)/i.exec(text.trim())?.[1] ?? '';
  const version = parseVersion(product.scheme, original);
  if (!version || version.numbers.length < product.numbersMin) return null;
  const packaged = readRevision(text);
  return { product, version, ...(packaged ? { packaged } : {}) };
}
