/** What the explorer is asked by `npm run bench explorer`: what pages open with, and free combinations. Queries of the page's URL. */

/** Links of the console, and the pages' own tabs; one of a kind each. */
export const openingViews: readonly [what: string, query: string][] = [
  ['explorer, by application', ''],
  ['explorer, in and out', 'by=none'],
  ['explorer, by server', 'by=server'],
  ['explorer, by customer', 'by=customer'],
  ['explorer, last hour', 'range=1h'],
  ['of a server', 'q=server:web-17'],
  ['of a customer', 'q=customer:17'],
  ['of an address', 'q=address:10.0.0.17'],
  ['of a device', 'q=device:02:00:00:00:00:11'],
  ['of an application', 'q=app:service-37.example'],
  ['of an application, by peer', 'by=peer&q=app:service-37.example'],
];

/** Any dimensions, any filters, packets, steps, the period before. */
export const freeCombinations: readonly string[] = [
  'by=peer',
  'by=application&q=-customer:7',
  'by=server&q=port:443+direction:outbound',
  'by=application&measure=packets',
  'by=sensor',
  'by=scope&q=address:10.0.1.0/24',
  'by=application&q=peer:198.18.1.0/24',
  'by=peer&q=app:service-37.example',
  'by=peer&q=-app:service-37.example+port:443',
  'by=server&q=peer:198.18.1.0/24',
  'by=port',
  'by=transport&q=customer:7,8,9',
  'by=direction&q=server:web-17,web-18',
  'by=peer&q=direction:inbound',
  'by=address&q=app:service-37.example,service-38.example',
  'by=device&q=port:22',
  'by=customer&q=sensor:hv-3',
  'by=application&q=sensor:hv-3+transport:udp',
  'by=server&measure=packets&q=-port:443',
  'by=peer&measure=packets',
  'by=application&compare=previous&range=6h',
  'by=server&step=600&q=app:service-37.example',
  'by=application&step=600&q=server:web-17',
  'by=peer&range=6h&q=customer:7',
  'by=application&range=6h&q=-server:web-17',
  'by=port&q=-peer:198.18.0.0/16',
];
