import type { Product } from '../products.ts';
import type { Criterion } from './advisory.ts';
import { type CpeName, type CpeValue, matchesText, parseCpe } from './cpe.ts';
import type { Truth, Uncertainty, Value } from './truth.ts';
import { compareNumbers, compareToBound, compareVersions, parseVersion, type Version } from './version.ts';

/** A service whose product and version are known. */
export interface KnownService {
  product: Product;
  version: Version;
}

export interface CriterionValue extends Value {
  /** The criterion is about the service's product. */
  isOwn: boolean;
}

/**
 * Whether a criterion is true of the service. What is about another product or the operating system is unknown: neither is
 * listed for a server.
 */
export function matchCriterion(service: KnownService, criterion: Criterion): CriterionValue {
  const name = nameOf(criterion);
  if (!name || !isOfProduct(service.product, name)) return unknown(false, 'platform', []);
  const truths = [matchRange(service, criterion), matchVersion(service, name)];
  if (truths.includes('no')) return { truth: 'no', why: [], matched: [], isOwn: true };
  const why: Uncertainty[] = [];
  if (truths.includes('unknown')) why.push('version');
  if (isSet(name.targetSoftware) || isSet(name.targetHardware)) why.push('platform');
  if ([name.edition, name.language, name.softwareEdition, name.other].some(isSet)) why.push('edition');
  const matched = [describeCriterion(criterion)];
  if (why.length > 0) return { truth: 'unknown', why: why.sort(), matched, isOwn: true };
  const isBounded = hasRange(criterion) || name.version.is !== 'any';
  return { truth: 'yes', why: isBounded ? [] : ['all_versions'], matched, isOwn: true };
}

/** Names that were read: one record is compared with every version of its product. */
const names = new WeakMap<Criterion, CpeName | null>();

function nameOf(criterion: Criterion): CpeName | null {
  let name = names.get(criterion);
  if (name === undefined) {
    name = parseCpe(criterion.cpe);
    names.set(criterion, name);
  }
  return name;
}

function unknown(isOwn: boolean, why: Uncertainty, matched: readonly string[]): CriterionValue {
  return { truth: 'unknown', why: [why], matched, isOwn };
}

const isSet = (value: CpeValue) => value.is !== 'any';

function isOfProduct({ names, otherEditions = [] }: Product, name: CpeName): boolean {
  return (
    matchesText(name.part, 'a') &&
    !(name.softwareEdition.is === 'text' && otherEditions.includes(name.softwareEdition.text)) &&
    names.some(
      ([vendor, product]) =>
        name.vendor.is === 'text' && name.vendor.text === vendor && matchesText(name.product, product),
    )
  );
}

const hasRange = (of: Criterion) =>
  [of.startIncluding, of.startExcluding, of.endIncluding, of.endExcluding].some(
    (bound) => bound !== undefined,
  );

/** Every bound that a range has must hold; a bound that can't be read leaves it open. */
function matchRange({ product: { scheme }, version }: KnownService, criterion: Criterion): Truth {
  const check = (text: string | undefined, holds: (difference: number) => boolean): Truth => {
    if (text === undefined) return 'yes';
    const bound = parseVersion(scheme, text);
    const difference = bound && compareToBound(scheme, version, bound);
    return difference === null ? 'unknown' : holds(difference) ? 'yes' : 'no';
  };
  const truths = [
    check(criterion.startIncluding, (difference) => difference >= 0),
    check(criterion.startExcluding, (difference) => difference > 0),
    check(criterion.endIncluding, (difference) => difference <= 0),
    check(criterion.endExcluding, (difference) => difference < 0),
  ];
  return truths.includes('no') ? 'no' : truths.includes('unknown') ? 'unknown' : 'yes';
}

/** The version and update of the CPE itself. `-` as a version is a record without one, which says nothing of any. */
function matchVersion(service: KnownService, name: CpeName): Truth {
  const { scheme } = service.product;
  if (name.version.is === 'none') return 'unknown';
  if (name.version.is === 'pattern') return matchPattern(service, name.version.pattern);
  // One update of any version, or of a range: whether its ends mean that update too is not said.
  if (name.version.is === 'any') return isSet(name.update) ? 'unknown' : 'yes';
  const stated = parseVersion(scheme, name.version.text);
  if (!stated) return 'unknown';
  if (compareNumbers(service.version, stated) !== 0) return 'no';
  return name.update.is === 'any' ? matchSuffix(service, stated) : matchUpdate(service, name);
}

/**
 * A record without an update. The original releases of OpenSSH have one always; of other products the record may mean the
 * release alone or its updates too (`1.3.5` and ProFTPD 1.3.5a).
 */
function matchSuffix(service: KnownService, stated: Version): Truth {
  if (compareVersions(service.version, stated) === 0) return 'yes';
  if (stated.stage === 0) return service.product.scheme === 'portable' ? 'yes' : 'unknown';
  return isLevelHidden(service) ? 'unknown' : 'no';
}

function matchUpdate(service: KnownService, name: CpeName): Truth {
  if (name.version.is !== 'text' || name.update.is === 'pattern') return 'unknown';
  if (isLevelHidden(service)) return 'unknown';
  // `-`: the release itself, without update.
  const update = name.update.is === 'text' ? name.update.text : '';
  const stated = parseVersion(service.product.scheme, name.version.text, update);
  if (!stated) return 'unknown';
  return compareVersions(service.version, stated) === 0 ? 'yes' : 'no';
}

/** OpenSSH's own banner leaves the level of the portable release out. */
const isLevelHidden = ({ product, version }: KnownService) =>
  product.scheme === 'portable' && version.stage === 0;

/** A version with wildcards, such as `1.2.*`, against the numbers of the service's. */
function matchPattern({ version }: KnownService, pattern: RegExp): Truth {
  return pattern.test(version.numbers.join('.')) ? (version.stage === 0 ? 'yes' : 'unknown') : 'no';
}

/** A criterion as evidence for people. */
function describeCriterion(criterion: Criterion): string {
  const bounds = [
    criterion.startIncluding !== undefined && `from ${criterion.startIncluding}`,
    criterion.startExcluding !== undefined && `after ${criterion.startExcluding}`,
    criterion.endIncluding !== undefined && `up to ${criterion.endIncluding}`,
    criterion.endExcluding !== undefined && `before ${criterion.endExcluding}`,
  ].filter((text) => text !== false);
  return [criterion.cpe, ...bounds].join(' ');
}
