/** `./svc monitor assess`: what the copy of the vulnerability database says of services (NET-2.6). It sends nothing. */
import { readFile, stat } from 'node:fs/promises';
import { CodedError, describeError } from '#common/errors/index.ts';
import { parseAddress } from '#common/ip/index.ts';
import { startParts } from '#common/lifecycle/index.ts';
import { compose, type Monitor } from '../composition.ts';
import { readConfig } from '../config.ts';
import {
  readCpeEvidence,
  readNmapEvidence,
  type ServiceAt,
  type ServiceEvidence,
} from '../vulnerabilities/index.ts';
import { type Assessed, describeAssessed, toJson } from './describe-assessed.ts';

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
