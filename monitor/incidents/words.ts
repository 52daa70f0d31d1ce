/** Incidents in words, the same in alerts and on pages. */
import { titleOfClass } from '#contracts/attack-classes.ts';
import type { Metric } from '#contracts/sensor-api/detection.ts';
import type { Incident } from './incident.ts';

/** `SYN flood`; an incident of severity info is no attack. */
export function nameOfClass(name: string, severity: Incident['severity'] = 'attack'): string {
  return name === 'other' && severity === 'info' ? 'Scan' : titleOfClass(name);
}

/** `SYN flood on 198.51.100.7`, `UDP flood by 198.51.100.7`, `UDP flood on capture eth0`. */
export function titleOfIncident(
  incident: Pick<Incident, 'class' | 'severity' | 'direction' | 'target' | 'isDrill'>,
): string {
  const word = incident.direction === 'inbound' ? 'on' : 'by';
  const target = targetText(incident);
  return `${incident.isDrill ? 'Drill: ' : ''}${nameOfClass(incident.class, incident.severity)} ${word} ${target}`;
}

/** An attack that a capture sends is one whose sender is not known; one on a capture is on all servers behind it. */
function targetText({ target, direction }: Pick<Incident, 'target' | 'direction'>): string {
  if (target.kind !== 'capture') return target.value;
  return direction === 'inbound' ? `capture ${target.value}` : `a server behind ${target.value}`;
}

/** True for metrics in bits a second; the others count packets or connections. */
export const isBitMetric = (metric: Metric): boolean => metric.endsWith('bps');

/** The rate that is compared with the threshold. */
export function comparedRate(metric: Metric, rate: { bps: number; pps: number }): number {
  return isBitMetric(metric) ? rate.bps : rate.pps;
}
