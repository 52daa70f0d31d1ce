/** Where each phase of a scan begins and ends in percent of the whole: discovery takes by far the most time. */
const spans: Readonly<Record<string, readonly [from: number, to: number]>> = {
  tcp_discovery: [0, 40],
  udp_discovery: [40, 90],
  tcp_identification: [90, 97],
  udp_identification: [97, 100],
};

/** How far a scan is, in percent; null before its first heartbeat. */
export function progressOf(phase: string | null, percent: number | null): number | null {
  const span = phase === null ? undefined : spans[phase];
  if (!span || percent === null) return null;
  return span[0] + ((span[1] - span[0]) * percent) / 100;
}
