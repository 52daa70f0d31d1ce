/**
 * What the evidence of one server's scans names, service by service. Pure.
 *
 * Thousands of servers run the same software, so what an evidence names is worked out once.
 */
import type { UnableReason } from '#contracts/findings.ts';
import type { ServiceEvidenceAt } from '#monitor/scans/index.ts';
import { hasPackageMark, type Identification, identifyService } from '../identify-service.ts';
import type { KnownService } from '../matcher/match-criterion.ts';
import type { Distribution } from '../packages/compare-revisions.ts';
import { products } from '../products.ts';

/** Raise it when products, versions, reasons or the matcher answer otherwise than before: everything is assessed again. */
export const assessmentRules = 7;

/** A product in one version, as it is compared. */
export interface SoftwareName {
  product: string;
  version: string;
}

export interface BoundService extends ServiceEvidenceAt {
  /** Null where no complete version is known; of a package that of its original. */
  software: SoftwareName | null;
  productKey: string | null;
  reason: UnableReason | null;
}

interface Identified {
  identification: Identification;
  isMarked: boolean;
}

const knownMax = 20_000;
const known = new Map<string, Identified>();

/** Services of one server: a package of a distribution among them makes the unmarked ones likely packages. */
export function bindServices(observed: readonly ServiceEvidenceAt[]): BoundService[] {
  const identified = observed.map(identify);
  const isPackaged = identified.some(({ isMarked }) => isMarked);
  return observed.map((evidence, i) => {
    const { product, service, reason } = identified[i]!.identification;
    return {
      ...evidence,
      software: service && nameSoftware(service),
      productKey: product?.key ?? null,
      reason: reason ?? (isPackaged ? 'likely_packaged' : null),
    };
  });
}

function identify(evidence: ServiceEvidenceAt): Identified {
  const { product, version, extraInfo, cpe, method, confidence } = evidence;
  const key = JSON.stringify([product, version, extraInfo, cpe, method, confidence]);
  const before = known.get(key);
  if (before) return before;
  if (known.size >= knownMax) known.clear();
  const made = { identification: identifyService(evidence), isMarked: hasPackageMark(evidence) };
  known.set(key, made);
  return made;
}

function nameSoftware({ product, version, packaged }: KnownService): SoftwareName {
  const words = [version.numbers.join('.'), version.stage, version.step];
  return {
    product: product.key,
    version: [...words, ...(packaged ? [packaged.distribution, packaged.version] : [])].join(' '),
  };
}

/** The reverse; null for a product that is not known any more. */
export function readSoftware({ product: key, version }: SoftwareName): KnownService | null {
  const product = products.find((one) => one.key === key);
  const [numbers, stage, step, distribution, revision] = version.split(' ') as [
    string,
    string,
    string,
    string?,
    string?,
  ];
  if (!product) return null;
  return {
    product,
    version: { numbers: numbers.split('.').map(Number), stage: Number(stage), step: Number(step) },
    ...(revision === undefined
      ? {}
      : { packaged: { distribution: distribution as Distribution, version: revision } }),
  };
}
