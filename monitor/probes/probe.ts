/** Probes and their valid targets. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { oneLine } from '#common/text/index.ts';

export const probeKinds = ['icmp', 'tcp', 'http', 'dns'] as const;
export type ProbeKind = (typeof probeKinds)[number];

/** Maximum number of probes of one site, the limit of the plan. */
export const probesMax = 32;
const nameLengthMax = 80;

export interface Probe {
  id: number;
  siteId: number;
  name: string;
  kind: ProbeKind;
  /** Address or host name; the URL of an HTTP probe; the resolver of a DNS probe. */
  target: string;
  /** For TCP and DNS probes. */
  port: number | null;
  /** The name to query, for DNS probes. */
  question: string | null;
  intervalSeconds: number;
  timeoutMs: number;
  isEnabled: boolean;
}

/** Input of a form. */
export interface ProbeInput {
  name: string;
  kind: string;
  target: string;
  port?: number | null | undefined;
  question?: string | null | undefined;
  intervalSeconds: number;
  timeoutMs: number;
}

export type ProbeChange = Pick<ProbeInput, 'name' | 'intervalSeconds' | 'timeoutMs'> & { isEnabled: boolean };

const hostShape =
  /^(?=.{1,253}$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/** A new, validated probe. Throws `probes.invalid` for the first error. */
export function parseProbe(input: ProbeInput): Omit<Probe, 'id' | 'siteId' | 'isEnabled'> {
  const kind = probeKinds.find((known) => known === input.kind);
  if (!kind) throw invalid(`The kind is one of ${probeKinds.join(', ')}.`);
  const port = kind === 'dns' ? (input.port ?? 53) : kind === 'tcp' ? (input.port ?? null) : null;
  if (kind === 'tcp' && port === null) throw invalid('Enter the port to connect to.');
  if (port !== null && !(Number.isInteger(port) && port >= 1 && port <= 65_535))
    throw invalid('A port is a whole number from 1 to 65535.');
  return {
    ...parseCadence(input),
    kind,
    target: kind === 'http' ? parseUrl(input.target) : parseHost(input.target),
    port,
    question: kind === 'dns' ? parseQuestion(input.question ?? '') : null,
  };
}

/** Validated name, interval and timeout. */
export function parseCadence(input: Pick<ProbeInput, 'name' | 'intervalSeconds' | 'timeoutMs'>) {
  const name = oneLine(input.name);
  if (name.length === 0 || name.length > nameLengthMax)
    throw invalid(`A probe's name has 1 to ${nameLengthMax} characters.`);
  const { intervalSeconds, timeoutMs } = input;
  if (!(Number.isInteger(intervalSeconds) && intervalSeconds >= 5 && intervalSeconds <= 60))
    throw invalid('The interval is 5 to 60 whole seconds.');
  if (!(Number.isInteger(timeoutMs) && timeoutMs >= 100 && timeoutMs <= 10_000))
    throw invalid('The timeout is 100 to 10000 milliseconds.');
  if (timeoutMs > intervalSeconds * 1000) throw invalid('The timeout must not be longer than the interval.');
  return { name, intervalSeconds, timeoutMs };
}

function parseHost(text: string): string {
  const host = text.trim().toLowerCase().replace(/\.$/, '');
  const address = canonicalAddress(host);
  if (address) return address;
  // A name of only digits and dots is a mistyped address.
  if (!hostShape.test(host) || /^[\d.]+$/.test(host))
    throw invalid('The target is an IP address or a host name, such as 192.0.2.1 or gateway.example.com.');
  return host;
}

function parseQuestion(text: string): string {
  const name = text.trim().toLowerCase().replace(/\.$/, '');
  if (!hostShape.test(name)) throw invalid('Enter the name to query, such as example.com.');
  return name;
}

function parseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalid('Enter a complete URL, such as https://www.example.com/health.');
  if (url.username !== '' || url.password !== '')
    throw invalid(
      'The URL must not contain a user name or password, because every operator and sensor can read it.',
    );
  url.hash = '';
  if (url.href.length > 500) throw invalid('The URL has at most 500 characters.');
  return url.href;
}

function invalid(message: string): CodedError {
  return new CodedError('probes.invalid', message);
}

/** A probe's target as text: `tcp 192.0.2.1:443`. */
export function describeTarget(probe: Pick<Probe, 'kind' | 'target' | 'port' | 'question'>): string {
  const host = probe.target.includes(':') && probe.kind !== 'http' ? `[${probe.target}]` : probe.target;
  switch (probe.kind) {
    case 'tcp':
      return `${host}:${probe.port}`;
    case 'dns':
      return `${probe.question} at ${probe.port === 53 ? probe.target : `${host}:${probe.port}`}`;
    default:
      return probe.target;
  }
}
