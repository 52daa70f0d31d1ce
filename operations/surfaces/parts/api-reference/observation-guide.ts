/** How to read what was observed of a server: traffic over time, and attacks. */
import { codeBlock, html, prose } from '#service-kit/pages/index.ts';

const paragraph = (text: string) => html`<p>${prose(text)}</p>`;

/** `origin` is where the API stands; null when it is not configured. */
export const observationGuide = (origin: string | null) => ({
  id: 'observation',
  title: 'Traffic over time',
  content: [
    paragraph(
      '`GET /servers/{id}/traffic` has the numbers of the Traffic page: bits and packets per second of the server’s public addresses, as they were counted at the hypervisor. Every step of the range is a point.',
    ),
    codeBlock({
      label: 'The last 24 hours in steps of 5 minutes, with the applications',
      code: `curl "${origin ?? '$URL'}/api/v2/servers/48211/traffic?range=24h&applications=yes" \\\n  -H "Authorization: Bearer $KEY"`,
    }),
    paragraph(
      'Null means unknown: the minute was not observed, or has not arrived yet. Draw a gap, and do not count it as zero. Minutes arrive one to two minutes after their end; a late minute changes its point afterwards, for up to 24 hours.',
    ),
    paragraph(
      'To follow a server, read the last minutes once a minute without `from` and `to`. For charts of days and weeks, take longer steps: one call has at most 1,500 points. A range that has passed keeps its `ETag` while no late minute arrives.',
    ),
    codeBlock({
      label: 'TypeScript',
      code: `const traffic = await api.readServerTraffic(48211, {
  step: 'hour',
  from: '2026-11-15T00:00:00Z',
  to: '2026-11-22T00:00:00Z',
});
for (const point of traffic.points)
  console.log(point.timestamp, point.inbound_bps ?? 'unknown', point.outbound_bps ?? 'unknown');`,
    }),
    paragraph(
      '`provider_scan_inbound_bytes` and `provider_scan_outbound_bytes` are the part of a point that our own port scans of the server caused. All totals have it; applications, `expected_bps` and the bandwidth pool do not.',
    ),
    paragraph(
      'For invoices use `GET /servers/{id}/bandwidth`: it has whole months and days, and says what counts against the pool; bytes of attacks do not. `GET /account` has what traffic beyond the pool costs this month.',
    ),
  ],
});

/** Attacks on a server: how they are read and followed. */
export const attackGuide = (origin: string | null) => ({
  id: 'attacks',
  title: 'Attacks',
  content: [
    paragraph(
      '`GET /servers/{id}/incidents` lists attacks on a server, or from it, newest first. The times are those of the sensor at the hypervisor. Sources of an attack are not shown: they are mostly forged.',
    ),
    codeBlock({
      label: 'Attacks that have no reported end',
      code: `curl "${origin ?? '$URL'}/api/v2/servers/48211/incidents?state=active,stale&severity=attack" \\\n  -H "Authorization: Bearer $KEY"`,
    }),
    paragraph(
      'An attack is `active` while it is observed. Without a report of the sensor it becomes `stale`: whether it goes on is unknown. Only the sensor’s report of the end makes it `recovered`, after 60 seconds below the thresholds. An attack that returns within five minutes is the same one again.',
    ),
    paragraph(
      'Customers choose the protection views of each server on its Protect page. While they are off, this call is a `404` (`protect_disabled`), and `attack_bps` and `expected_bps` of the traffic are null. Observation goes on.',
    ),
  ],
});
