import type { ShownPackage } from '../packages/compare-revisions.ts';
import type { Product } from '../products.ts';
import type { Criterion } from './advisory.ts';
import { type CpeName, type CpeValue, matchesText, parseCpe } from './cpe.ts';
import {
  compareNumbers,
  compareToBound,
  compareVersions,
  parseStated,
  parseVersion,
  type StatedVersion,
  type Version,
} from './version.ts';

/** A service whose product and version are known. */
export interface KnownService {
  product: Product;
  version: Version;
  /** The package of a distribution that was made of this version, where a service shows its whole revision. */
  packaged?: ShownPackage;
}

interface CriterionValue extends Value {
  /** The criterion is about the service's product. */
  isOwn: boolean;
  /** It names every version of the product: `*` without a range. */
  isOfAnyVersion: boolean;
}

/**
 * Whether a criterion is true of the service. What is about another product or the operating system is unknown: neither is
 * listed for a server.
 */
export function matchCriterion(service: KnownService, criterion: Criterion): CriterionValue {
  const read = readCriterion(service.product, criterion);
  if (!read) return ofOther;
  const { name, other } = read;
  const range = matchRange(service, read);
  if (range === 'no') return notOwn;
  const stated = matchVersion(service, read);
  if (stated === 'no') return notOwn;
  const why: Uncertainty[] = [];
  if (range === 'unknown' || stated === 'unknown') why.push('version');
  why.push(...other);
  const truth = why.length > 0 ? 'unknown' : 'yes';
  const isOfAnyVersion = read.bounds.length === 0 && name.version.is === 'any' && !isSet(name.update);
  if (isOfAnyVersion) why.push('all_versions');
  return { truth, why: why.sort(), matched: [describeCriterion(criterion)], isOwn: true, isOfAnyVersion };
}

const ofOther: CriterionValue = {
  truth: 'unknown',
  why: ['platform'],
  matched: [],
  isOwn: false,
  isOfAnyVersion: false,
};
const notOwn: CriterionValue = { truth: 'no', why: [], matched: [], isOwn: true, isOfAnyVersion: false };

interface Bound {
  stated: StatedVersion;
  holds(difference: number): boolean;
}

/** A criterion of a product, read. */
interface ReadCriterion {
  product: Product;
  name: CpeName;
  bounds: readonly Bound[];
  /** The version of the CPE itself; null when it names none. */
  stated: StatedVersion | null;
  /** What it says of more than the version. */
  other: readonly Uncertainty[];
}

/** What was read, null of another product: one record is compared with every version of its product. */
const known = new WeakMap<Criterion, { product: Product; read: ReadCriterion | null }>();

function readCriterion(product: Product, criterion: Criterion): ReadCriterion | null {
  const before = known.get(criterion);
  if (before?.product === product) return before.read;
  const name = parseCpe(criterion.cpe);
  const read = name && isOfProduct(product, name) ? readOwn(product, name, criterion) : null;
  known.set(criterion, { product, read });
  return read;
}

function readOwn(product: Product, name: CpeName, criterion: Criterion): ReadCriterion {
  const { startIncluding, startExcluding, endIncluding, endExcluding } = criterion;
  const bound = (text: string | undefined, holds: Bound['holds']): Bound[] =>
    text === undefined ? [] : [{ stated: parseStated(product.scheme, text), holds }];
  const other: Uncertainty[] = [];
  if (isSet(name.targetSoftware) || isSet(name.targetHardware)) other.push('platform');
  if ([name.edition, name.language, name.softwareEdition, name.other].some(isSet)) other.push('edition');
  return {
    ...{ product, name, other },
    bounds: [
      ...bound(startIncluding, (difference) => difference >= 0),
      ...bound(startExcluding, (difference) => difference > 0),
      ...bound(endIncluding, (difference) => difference <= 0),
      ...bound(endExcluding, (difference) => difference < 0),
    ],
    stated: name.version.is === 'text' ? parseStated(product.scheme, name.version.text) : null,
  };
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

/**
 * Every bound that a range has must hold; one that can't be read leaves it open where its numbers do not decide. A range of
 * another product line holds of no version.
 */
function matchRange({ product: { scheme }, version }: KnownService, { bounds }: ReadCriterion): Truth {
  let truth: Truth = 'yes';
  for (const bound of bounds) {
    if (bound.stated.isForeign) return 'no';
    const difference = compareToBound(scheme, version, bound.stated);
    if (difference === null) truth = 'unknown';
    else if (!bound.holds(difference)) return 'no';
  }
  return truth;
}

/** The version and update of the CPE itself. `-` is no version, which a service that has one is not. */
function matchVersion(service: KnownService, { name, stated }: ReadCriterion): Truth {
  if (name.version.is === 'none') return 'no';
  if (name.version.is === 'pattern') return matchPattern(service, name.version.pattern);
  // One update of any version, or of a range: whether its ends mean that update too is not said.
  if (name.version.is === 'any') return isSet(name.update) ? 'unknown' : 'yes';
  if (!stated || stated.isForeign) return 'no';
  if (!stated.version)
    return compareToBound(service.product.scheme, service.version, stated) ? 'no' : 'unknown';
  if (compareNumbers(service.version, stated.version) !== 0) return 'no';
  return name.update.is === 'any' ? matchSuffix(service, stated.version) : matchUpdate(service, name);
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

// Values of the three-valued logic in which configurations are evaluated: what is not known of a server is neither true nor
// false, and a result that hangs on it says so.

type Truth = 'no' | 'unknown' | 'yes';

/**
 * Why a result is not certain: the operating system or another product decides (`platform`), an edition or a build for one
 * system does (`edition`), the version is not exact enough (`version`), or the record names every version (`all_versions`).
 */
export type Uncertainty = 'platform' | 'edition' | 'version' | 'all_versions';

export interface Value {
  truth: Truth;
  /** Sorted, each once. */
  why: readonly Uncertainty[];
  /** Criteria of the service's product that led to it. */
  matched: readonly string[];
}

const order = { no: 0, unknown: 1, yes: 2 } as const;

export const no: Value = { truth: 'no', why: [], matched: [] };

/** True when every value is: the least of them. Its reasons are those of all that hold it there. */
export function allOf(values: readonly Value[]): Value {
  const truth = least(values.map((value) => value.truth));
  if (truth === 'no') return no;
  return { truth, ...merge(values) };
}

/** True when one value is: the greatest of them, and of several the one with the fewest reasons for doubt. */
export function anyOf(values: readonly Value[]): Value {
  const truth = values.reduce<Truth>(
    (best, value) => (order[value.truth] > order[best] ? value.truth : best),
    'no',
  );
  if (truth === 'no') return no;
  const holding = values.filter((value) => value.truth === truth);
  const doubtsMin = Math.min(...holding.map((value) => value.why.length));
  return { truth, ...merge(holding.filter((value) => value.why.length === doubtsMin)) };
}

export function opposite(value: Value): Value {
  if (value.truth === 'unknown') return value;
  return { ...value, truth: value.truth === 'yes' ? 'no' : 'yes' };
}

function least(truths: readonly Truth[]): Truth {
  return truths.reduce<Truth>((worst, truth) => (order[truth] < order[worst] ? truth : worst), 'yes');
}

function merge(values: readonly Value[]): Pick<Value, 'why' | 'matched'> {
  if (values.length === 1) return { why: values[0]!.why, matched: values[0]!.matched };
  return {
    why: [...new Set(values.flatMap((value) => value.why))].sort(),
    matched: [...new Set(values.flatMap((value) => value.matched))],
  };
}
