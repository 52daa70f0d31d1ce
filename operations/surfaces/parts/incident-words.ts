/** States of incidents in words, alike on portal and console. */
import type { IncidentState } from '#contracts/incidents.ts';
import type { IncidentCursor, OpenAttack } from '#operations/protect/index.ts';
import { badge, formatDuration, type Html, type Tone } from '#service-kit/pages/index.ts';

interface ShownIncident {
  isDrill: boolean;
  state: IncidentState;
  lastObservedAt: Date;
}

export function incidentBadge({ state, isDrill }: ShownIncident): Html {
  if (state === 'active') return badge(isDrill ? 'info' : 'bad', 'active');
  return state === 'stale' ? badge('warn', 'no recent data') : badge('neutral', 'recovered');
}

export const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** How long an incident has lasted, or did; of a stale one, as far as is known. */
export function durationOf(
  incident: ShownIncident & { startedAt: Date; recoveredAt: Date | null },
  nowMs: number,
): string {
  const endMs =
    incident.recoveredAt?.getTime() ??
    (incident.state === 'stale' ? incident.lastObservedAt.getTime() : nowMs);
  return formatDuration(Math.max(0, (endMs - incident.startedAt.getTime()) / 1000));
}

/** An attacked server in two or three words. */
export function openAttackWords(open: OpenAttack): { tone: Tone; text: string } {
  if (open.isDrill) return { tone: 'info', text: 'attack drill' };
  if (!open.isActive) return { tone: 'warn', text: 'attack, no recent data' };
  return { tone: 'bad', text: open.isInbound ? 'under attack' : 'sends an attack' };
}

/** The mark of an attacked server in a list. */
export function openAttackBadge(open: OpenAttack | undefined): Html | '' {
  if (open === undefined) return '';
  const { tone, text } = openAttackWords(open);
  return badge(tone, text);
}

/** The place of an incident in a list, as it travels in a URL: `1764500000000.UUID`. */
export function writeIncidentCursor(last: { startedAt: Date; id: string }): string {
  return `${last.startedAt.getTime()}.${last.id}`;
}

/** The cursor of a URL; what is none reads as the first page. */
export function readIncidentCursor(text: string | undefined): IncidentCursor | undefined {
  const [, ms, id] = /^(\d{1,14})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/.exec(text ?? '') ?? [];
  return ms === undefined || id === undefined ? undefined : { startedMs: Number(ms), id };
}
