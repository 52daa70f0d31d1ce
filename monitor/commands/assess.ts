/** `./svc monitor assess`: what the copy of the vulnerability database says of services (NET-2.6). It sends nothing. */
import { readFile, stat } from 'node:fs/promises';
import { CodedError, describeError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';
import { startParts } from '#common/lifecycle/index.ts';
import { type UnableReason, unableRows } from '#contracts/findings.ts';
import { compose, type Monitor } from '../composition.ts';
import { readConfig } from '../config.ts';
import type {
  ApartFinding,
  Assessment,
  CopiedProduct,
  Finding,
  ServiceAt,
} from '../vulnerabilities/index.ts';
import { readCpeEvidence, readNmapEvidence, type ServiceEvidence } from '../vulnerabilities/index.ts';

/** Exactly one of the first four. */
export interface AssessOptions {
  cpe?: string;
  nmap?: string;
  address?: string;
  product?: string;
  productVersion?: string;
  info?: string;
  json?: boolean;
}

const fileBytesMax = 64 * 1024 * 1024;

export async function assess(environment: NodeJS.ProcessEnv, options: AssessOptions): Promise<number> {
  const given = [options.cpe, options.nmap, options.address, options.product].filter(
    (one) => one !== undefined,
  );
  if (given.length !== 1)
    throw new CodedError('command.invalid', 'Give one of --cpe, --nmap, --address and --product.');
  // Faults of the command line and of files are told before the database starts.
  const read = options.address === undefined ? await readGiven(options) : null;
  const monitor = compose(readConfig(environment), { embedded: 'existing' });
  const stop = await startParts([monitor.database], monitor.reporter);
  try {
    const services = read ?? (await readStored(monitor, options.address!));
    const copied = await monitor.vulnerabilities.listProducts();
    const assessed = await assessByAddress(monitor, services);
    const nowMs = monitor.clock.nowMs();
    if (options.json) {
      const shown = assessed.map((one) => toJson(one, copied, nowMs));
      const isOne = options.nmap === undefined && options.address === undefined;
      process.stdout.write(`${JSON.stringify(isOne ? shown[0] : shown, null, 2)}\n`);
    } else process.stdout.write(describeAssessed(assessed, copied, nowMs));
    return 0;
  } finally {
    await stop();
  }
}

async function readGiven(options: AssessOptions): Promise<ServiceAt[]> {
  const { cpe, nmap, product } = options;
  const at = { address: '', transport: '', port: 0 };
  if (cpe !== undefined) {
    const evidence = readCpeEvidence(cpe);
    if (!evidence)
      throw new CodedError(
        'command.invalid',
        '--cpe takes a name such as cpe:2.3:a:openbsd:openssh:9.6:p1:*:*:*:*:*:* or cpe:/a:openbsd:openssh:9.6p1.',
      );
    return [{ ...at, evidence }];
  }
  if (nmap !== undefined) return readNmapFile(nmap);
  const text = (given: string | undefined) => given?.trim().slice(0, 256) || null;
  const evidence: ServiceEvidence = {
    ...{ product: text(product), version: text(options.productVersion), extraInfo: text(options.info) },
    ...{ method: 'probed', confidence: 10, cpe: [] },
  };
  return [{ ...at, evidence }];
}

async function readNmapFile(path: string): Promise<ServiceAt[]> {
  try {
    const { size } = await stat(path);
    if (size > fileBytesMax) throw new Error('it is larger than 64 MiB');
    return readNmapEvidence(await readFile(path, 'utf8'), (count) =>
      process.stderr.write(`${path} has ${count} characters that XML forbids; each was replaced.\n`),
    );
  } catch (error) {
    throw new CodedError('command.invalid', `${path} can't be read as XML of nmap: ${describeError(error)}.`);
  }
}

/** Open ports of scans of the last seven days. */
async function readStored({ scans }: Monitor, address: string): Promise<ServiceAt[]> {
  if (!parseAddress(address))
    throw new CodedError('command.invalid', '--address takes an IPv4 or IPv6 address.');
  const ports = await scans.listServicesAt(address);
  if (ports.length === 0)
    throw new CodedError(
      'command.invalid',
      `No scan of the last seven days found an open port of ${address}.`,
    );
  return ports.map(({ transport, port, ...evidence }) => ({ address, transport, port, evidence }));
}

/** Services of one address are judged together: a package among them tells of the others. */
async function assessByAddress({ vulnerabilities }: Monitor, services: ServiceAt[]): Promise<Assessed[]> {
  const byAddress = Map.groupBy(services, ({ address }) => address);
  const assessed: Assessed[] = [];
  for (const own of byAddress.values()) {
    const results = await vulnerabilities.assess(own.map(({ evidence }) => evidence));
    assessed.push(...own.map((one, i) => ({ ...one, result: results[i]! })));
  }
  return assessed;
}

// Assessments as text and as JSON.

/** A service with its assessment. */
interface Assessed extends ServiceAt {
  result: Assessment;
}

const unableText = (reason: UnableReason) =>
  `${unableRows[reason].words}${reason === 'no_database' ? ': ./svc monitor refresh_vulnerabilities' : ''}`;

const doubts: Readonly<Record<Finding['incomplete'][number], string>> = {
  platform: 'depends on the operating system or another product',
  edition: 'depends on the edition',
  version: 'depends on a part of the version that is not shown',
  all_versions: 'any version, says the record',
};

const packageText = ({ fixedIn }: NonNullable<Finding['package']>) =>
  fixedIn === null ? 'affected package, no fix yet' : `affected package, fixed in ${fixedIn}`;

function apartText({ why, fixedIn }: ApartFinding): string {
  if (why === 'any_version') return doubts.all_versions;
  if (why === 'not_in_tracker') return "the distribution's tracker says nothing certain";
  return fixedIn ? `fixed in this package, since ${fixedIn}` : 'the package was never affected';
}

/** Terms of the database ask for it. */
const notice = 'This product uses the NVD API but is not endorsed or certified by the NVD.';

function describeAssessed(assessed: readonly Assessed[], copied: readonly CopiedProduct[], nowMs: number) {
  return `${assessed.flatMap((one) => describe(one, copied, nowMs)).join('\n')}\n${notice}\n`;
}

function describe(one: Assessed, copied: readonly CopiedProduct[], nowMs: number): string[] {
  const { result, evidence } = one;
  const place = one.port > 0 ? `${one.address} ${one.transport}/${one.port} ` : '';
  const title = result.product?.title ?? evidence.product ?? 'unknown product';
  const head = `${place}${title}${evidence.version === null ? '' : ` ${evidence.version}`}`;
  const product = copied.find((entry) => entry.product === result.product?.key);
  const age =
    product?.refreshedAtMs == null
      ? ''
      : `, records ${Math.floor(Math.max(0, nowMs - product.refreshedAtMs) / 3_600_000)} h old`;
  if (result.reason === null) {
    const count = result.findings.length;
    const found =
      count === 0
        ? 'no potential vulnerability'
        : `${count} potential ${count === 1 ? 'vulnerability' : 'vulnerabilities'}`;
    return [
      `${head}: ${found}${result.packaged ? `, as the tracker of ${result.packaged.distribution} says of this package,` : ''} in ${result.compared} records${age}${mayBePackage(one) ? ". It may be a distribution's package: not confirmed" : ''}`,
      ...result.findings.flatMap(describeFinding),
      ...describeApart(result.apartFindings),
    ];
  }
  const upstream = result.upstreamFindings;
  const more =
    upstream.length === 0 ? [] : [`  The original of this version has (not findings of this service):`];
  return [
    `${head}: unable to assess: ${unableText(result.reason)}`,
    ...more,
    ...upstream.flatMap(describeFinding),
  ];
}

/** Some packages show no mark, so what a service shows of itself never confirms an original. */
const mayBePackage = ({ evidence, result }: Assessed) =>
  result.reason === null && result.packaged === null && evidence.method === 'probed';

function describeApart(apart: readonly ApartFinding[]): string[] {
  if (apart.length === 0) return [];
  return [
    '  Shown apart (not active):',
    ...apart.flatMap((one) => [`   ${apartText(one)}:`, ...describeFinding(one.finding)]),
  ];
}

function describeFinding(finding: Finding): string[] {
  const { severity } = finding;
  const marks = [
    finding.result,
    severity ? `${severity.rating} ${severity.score.toFixed(1)} (CVSS ${severity.version})` : 'not scored',
    ...(finding.isKnownExploited ? ['known exploited'] : []),
    ...(finding.isDisputed ? ['disputed'] : []),
    ...(finding.package ? [packageText(finding.package)] : []),
    ...finding.incomplete.map((doubt) => doubts[doubt]),
  ];
  return [
    `  ${finding.cve.padEnd(16)} ${marks.join(', ')}`,
    `    ${finding.summary}`,
    ...finding.matched.map((criterion) => `    fits ${criterion}`),
  ];
}

/** The form of `--json`. */
function toJson(one: Assessed, copied: readonly CopiedProduct[], nowMs: number) {
  const { address, transport, port, evidence, result } = one;
  const product = copied.find((entry) => entry.product === result.product?.key);
  const refreshedAtMs = product?.refreshedAtMs ?? null;
  return {
    service: {
      ...(port > 0 ? { address, transport, port } : {}),
      ...{
        product: evidence.product ?? result.product?.title ?? null,
        version: evidence.version,
        extra_info: evidence.extraInfo,
        cpe: evidence.cpe,
      },
      known_product: result.product?.key ?? null,
    },
    assessment: result.assessment,
    reason: result.reason,
    package: result.packaged,
    may_be_package: mayBePackage(one),
    findings: result.findings.map(findingJson),
    upstream_findings: result.upstreamFindings.map(findingJson),
    apart_findings: result.apartFindings.map(({ why, finding, fixedIn }) => ({
      ...{ why, ...findingJson(finding) },
      ...(fixedIn === undefined ? {} : { fixed_in_package: fixedIn }),
    })),
    findings_limited: result.isLimited,
    database: {
      refreshed_at: refreshedAtMs === null ? null : new Date(refreshedAtMs).toISOString(),
      age_seconds: refreshedAtMs === null ? null : Math.max(0, Math.floor((nowMs - refreshedAtMs) / 1_000)),
      records: product?.records ?? 0,
      compared: result.compared,
      deferred: product?.deferred ?? 0,
      unreadable: product?.unreadable ?? 0,
      last_error: product?.error ?? null,
    },
  };
}

function findingJson(finding: Finding) {
  const { cve, result, incomplete, severity, summary, matched } = finding;
  return {
    ...{ cve, result, incomplete, severity },
    ...{ known_exploited: finding.isKnownExploited, disputed: finding.isDisputed, summary },
    ...(finding.package ? { fixed_in_package: finding.package.fixedIn } : {}),
    ...{ published_at: finding.publishedAt, modified_at: finding.modifiedAt, matched },
  };
}
