/** What a probe is, and which targets may be one. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';

export const probeKinds = ['icmp', 'tcp', 'http', 'dns'] as const;
export type ProbeKind = (typeof probeKinds)[number];

/** Probes of one site; the plan's bound. */
export const probesMax = 32;
const nameLengthMax = 80;

export interface Probe {
  id: number;
  siteId: number;
  name: string;
  kind: ProbeKind;
  /** Address or host name; the URL of an HTTP probe; the resolver of a DNS probe. */
  target: string;
  /** Of TCP and DNS probes. */
  port: number | null;
  /** The name that a DNS probe asks for. */
  question: string | null;
  intervalSeconds: number;
  timeoutMs: number;
  isEnabled: boolean;
}

/** As a form brings it. */
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

/** A new probe, checked; throws `probes.invalid` for the first thing that is wrong. */
export function parseProbe(input: ProbeInput): Omit<Probe, 'id' | 'siteId' | 'isEnabled'> {
  const kind = probeKinds.find((known) => known === input.kind);
  if (!kind) throw invalid(`The kind is one of ${probeKinds.join(', ')}.`);
  const port = kind === 'dns' ? (input.port ?? 53) : kind === 'tcp' ? (input.port ?? null) : null;
  if (kind === 'tcp' && port === null) throw invalid('Give the port that is to be connected to.');
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

/** Name, interval and timeout, checked. */
export function parseCadence(input: Pick<ProbeInput, 'name' | 'intervalSeconds' | 'timeoutMs'>) {
  const name = input.name.trim();
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
  // A name of digits and dots alone is a mistyped address.
  if (!hostShape.test(host) || /^[\d.]+$/.test(host))
    throw invalid('The target is an IP address or a host name, such as 192.0.2.1 or gateway.example.com.');
  return host;
}

function parseQuestion(text: string): string {
  const name = text.trim().toLowerCase().replace(/\.$/, '');
  if (!hostShape.test(name))
    throw invalid('Give the name that the resolver is asked for, such as example.com.');
  return name;
}

function parseUrl(text: string): string {
  const url = URL.parse(text.trim());
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalid('Give a whole URL, such as https://www.example.com/health.');
  if (url.username !== '' || url.password !== '')
    throw invalid('The URL must not hold a name or a password: every operator and every sensor reads it.');
  url.hash = '';
  if (url.href.length > 500) throw invalid('The URL has at most 500 characters.');
  return url.href;
}

function invalid(message: string): CodedError {
  return new CodedError('probes.invalid', message);
}

/** A probe's target for people: `tcp 192.0.2.1:443`. */
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
