/** Describes an event in a sentence, with links to its subjects. */
import type { MonitorEvent } from '#monitor/events/index.ts';
import { titleOfIncident } from '#monitor/incidents/index.ts';
import { type Content, code, html, link } from '#service-kit/pages/index.ts';
import { addressHref, addressText } from '../parts/address-link.ts';

const endings: Readonly<Record<string, string>> = {
  one_owner_left: 'one of them is left',
  machine_destroyed: 'the server of one of them was destroyed',
  segments_told_apart: 'they are on networks of their own',
};

/** Events of unknown kinds list their fields. */
export function describeEvent(event: MonitorEvent): Content {
  const { kind, siteId, details } = event;
  const { address, segment, mac_addresses: macs, reason, sequence, spool_id: spool, error } = details;
  if (kind === 'telemetry_rejected' && sequence !== undefined)
    return html`Upload ${textOf(sequence)} of spool ${code(textOf(spool))} was skipped: ${textOf(error)}`;
  if (kind === 'ddos_detected' && siteId !== null) return describeAttack(siteId, details);
  const holders = Array.isArray(macs)
    ? macs.map((mac, index) => html`${index > 0 ? ' and ' : ' '}${code(String(mac))}`)
    : '';
  if (kind === 'ip_conflict_opened' && address !== undefined)
    return html`${addressLink(siteId, address, segment)} is claimed by${holders}`;
  if (kind === 'spoofed_traffic' && address !== undefined)
    return html`Another MAC sends from ${addressLink(siteId, address, '')}:${holders}. It does not count for the address.`;
  if (kind === 'ip_conflict_resolved' && address !== undefined)
    return html`${addressLink(siteId, address, segment)} was claimed by${holders}; ${endings[textOf(reason)] ?? textOf(reason)}`;
  return Object.entries(details).map(([name, value], index) => {
    const shown =
      name === 'address' ? addressLink(siteId, value, segment) : html`<span>${textOf(value)}</span>`;
    return html`${index > 0 ? '; ' : ''}${name.replaceAll('_', ' ')} ${shown}`;
  });
}

function describeAttack(siteId: number, details: MonitorEvent['details']): Content {
  const title = titleOfIncident({
    class: textOf(details.class) as never,
    severity: 'attack',
    direction: details.direction === 'outbound' ? 'outbound' : 'inbound',
    target: { kind: details.target_kind === 'capture' ? 'capture' : 'host', value: textOf(details.target) },
    isDrill: details.drill === true,
  });
  return link(`/sites/${siteId}/incidents/${textOf(details.incident_id)}`, title);
}

function addressLink(siteId: number | null, address: unknown, segment: unknown): Content {
  const place = { address: textOf(address), segment: typeof segment === 'string' ? segment : '' };
  return siteId === null ? addressText(place) : link(addressHref(siteId, place), addressText(place));
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
