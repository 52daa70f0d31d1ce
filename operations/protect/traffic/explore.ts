/** Applications, which are known of the last 24 hours alone (NET-2.4.4): which of them pass filters, and how they are named. */
import { type Dimension, type Filter, noPort, passes } from '#service-kit/explorer/index.ts';

/** Known of applications alone. */
const ofApplications: readonly Dimension[] = ['application', 'port', 'transport'];

/** True when the view can only be answered from applications. */
export function namesApplications(filters: readonly Filter[]): boolean {
  return filters.some(({ dimension }) => ofApplications.includes(dimension));
}

/** `tcp/443`, or what is known of it. */
export function serviceOf(of: { transport: string | null; serverPort: number | null }): string {
  if (of.transport === null) return of.serverPort === null ? 'unknown' : String(of.serverPort);
  return of.serverPort === null ? of.transport : `${of.transport}/${of.serverPort}`;
}

/** Whether an application passes the filters; names are compared without regard to case. */
export function passesIdentity(
  filters: readonly Filter[],
  of: { name: string; transport: string | null; serverPort: number | null },
): boolean {
  const same = (a: string, b: string) => a.toLowerCase() === b.toLowerCase();
  return (
    passes(filters, 'application', (value) => same(value, of.name)) &&
    passes(filters, 'port', (value) =>
      [serviceOf(of), String(of.serverPort ?? noPort)].some((one) => same(value, one)),
    ) &&
    passes(filters, 'transport', (value) => same(value, of.transport ?? ''))
  );
}

export const bytesOf = (of: { inboundBytes: number; outboundBytes: number }): number =>
  of.inboundBytes + of.outboundBytes;
