/** The page of a server: thresholds that apply to every address that it has. */
import type { FastifyRequest } from 'fastify';
import {
  type AddressProtection,
  noChoices,
  resolveAbove,
  resolveSite,
  type ServerSettings,
  type ThresholdChoices,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import {
  type Content,
  code,
  drawer,
  type Html,
  html,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable, linkColumn } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';
import type { OperationsLink } from '../parts/address-link.ts';
import {
  changedText,
  inheritedBy,
  type Refused,
  readTexts,
  textsOf,
  thresholdForm,
} from './threshold-parts.ts';

export interface ProtectedServerPage {
  site: Site;
  name: string;
  /** What is set for it; null: nothing. */
  own: ServerSettings | null;
  addresses: readonly AddressProtection[];
  server: { clusterId: number; serverId: number };
  /** Of the site. */
  thresholds: ThresholdChoices;
  inOperations: OperationsLink;
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
}

export function protectedServerPage(request: FastifyRequest, page: ProtectedServerPage): Content {
  const { name, own, addresses, server, viewer, nowMs, refused } = page;
  return [
    pageHeader({
      title: `Protection of ${name}`,
      state: own
        ? { tone: 'good', text: ['Has thresholds of its own, ', changedText(own, nowMs), '.'] }
        : { tone: 'neutral', text: 'Has no thresholds of its own.' },
      actions: [
        page.inOperations({ kind: 'server', clusterId: server.clusterId, serverId: server.serverId }),
        viewer.canChange &&
          !refused &&
          drawer({ id: 'edit-server', open: 'Change thresholds', title: `Thresholds of ${name}` }, [
            html`<p class="hint">They apply to every address of the server, also to those that it gets later. Clear all fields to remove them.</p>`,
            ownForm(page),
          ]),
      ],
    }),
    refused && section({ title: 'The thresholds were not saved' }, ownForm(page)),
    section(
      { title: 'Addresses', description: 'Open an address for the thresholds that apply to it.' },
      addressTable(request, page.site.id, addresses),
    ),
  ];
}

function ownForm({ site, own, addresses, server, thresholds, viewer, refused }: ProtectedServerPage): Html {
  const [first] = addresses;
  // Addresses of different groups inherit different values; then those of the site are named.
  const isOneGroup = addresses.every((one) => one.applying.group?.id === first?.applying.group?.id);
  const above =
    first && isOneGroup ? resolveAbove(first.settings, first.applying, 'server') : resolveSite(thresholds);
  return thresholdForm({
    action: `/sites/${site.id}/protection/servers/${server.clusterId}/${server.serverId}`,
    csrfToken: viewer.csrfToken,
    submit: 'Save thresholds',
    id: 'server',
    revision: own?.revision ?? 0,
    texts: refused ? readTexts(refused.typed) : textsOf(own?.thresholds ?? noChoices),
    inherited: inheritedBy(above),
    refused,
  });
}

function addressTable(request: FastifyRequest, siteId: number, addresses: readonly AddressProtection[]) {
  const ownOf = ({ resolved }: AddressProtection) =>
    [resolved.inbound, resolved.outbound]
      .flatMap((one) => Object.values(one))
      .filter(({ level }) => level !== 'default').length;
  return dataTable<AddressProtection>(request, {
    id: 'addresses',
    caption: 'Addresses of this server',
    card: { line: ['group', 'set'] },
    rows: addresses,
    columns: [
      linkColumn(
        'address',
        'Address',
        (row) => [row.address, `/sites/${siteId}/protection/addresses/${encodeURIComponent(row.address)}`],
        { show: code },
      ),
      {
        key: 'group',
        header: 'Group',
        cell: (row) => row.applying.group?.name ?? 'none',
        value: (row) => row.applying.group?.name ?? null,
      },
      countColumn('set', 'Thresholds other than the defaults', ownOf, { field: 'thresholds_set' }),
    ],
    empty: {
      title: 'No addresses',
      text: 'Neither operations nor the inventory lists an address of this server now.',
    },
  });
}
