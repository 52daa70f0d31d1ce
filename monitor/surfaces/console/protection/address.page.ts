/** What protects one address: its thresholds with the level of each, and the form of its own. */
import type { FastifyRequest } from 'fastify';
import type { AddressProtection, Drill, ServerSettings } from '#monitor/protection/index.ts';
import { type Level, noChoices, resolveAbove } from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import {
  banner,
  type Content,
  code,
  definitionList,
  drawer,
  type Html,
  html,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { addressHref } from '../parts/address-link.ts';
import { drillForm, drillTable } from './drill-parts.ts';
import { changedText, inheritedBy, type Refused, thresholdForm, thresholdTable } from './threshold-parts.ts';
import { levelText, readTexts, textsOf } from './threshold-text.ts';

export interface ProtectedAddressPage {
  site: Site;
  found: AddressProtection;
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
  /** A refused drill. */
  drill?: Refused | undefined;
  drills: readonly Drill[];
}

export function protectedAddressPage(request: FastifyRequest, page: ProtectedAddressPage): Content {
  const { site, found, viewer, refused } = page;
  const { address, resolved, oddities } = found;
  return [
    pageHeader({
      title: html`Protection of ${code(address, true)}`,
      state: stateOf(found),
      actions: [
        link(addressHref(site.id, { address, segment: '' }), 'Traffic', { kind: 'button' }),
        link(`/sites/${site.id}/protection/addresses/${encodeURIComponent(address)}/what-if`, 'What if', {
          kind: 'button',
        }),
        viewer.canChange && !refused && editDrawer(page),
      ],
    }),
    oddities.map((text) => banner({ tone: 'warn', title: text })),
    refused && section({ title: 'The thresholds were not saved' }, ownForm(page)),
    levelList(page),
    section(
      {
        id: 'thresholds',
        title: 'Thresholds',
        description: 'What sensors judge this address by, with the level that each value comes from.',
      },
      thresholdTable(request, resolved, (level) => levelLink(page, level)),
    ),
    drillSection(request, page),
  ];
}

function stateOf({ protectedBy, servers }: AddressProtection): { tone: Tone; text: Content } {
  const names = servers.map((one) => one.name).join(', ');
  switch (protectedBy.kind) {
    case 'target':
      return { tone: 'good', text: `Protected, as an address of ${names || 'a server'}.` };
    case 'additional':
      return { tone: 'good', text: html`Protected by the additional prefix ${code(protectedBy.cidr)}.` };
    case 'nothing':
      return {
        tone: 'warn',
        text: 'Not protected: it is no address of a server of this site, and in no additional prefix. Sensors find no attack on it.',
      };
  }
}

function drillSection(request: FastifyRequest, page: ProtectedAddressPage): Content {
  const { site, found, viewer, drill, drills, nowMs } = page;
  const path = `/sites/${site.id}/protection`;
  const { csrfToken } = viewer;
  const own = `${path}/addresses/${encodeURIComponent(found.address)}`;
  const action = `${own}/drills`;
  const start = drillForm({ action, csrfToken, refused: drill });
  const canStart = viewer.canChange && found.protectedBy.kind !== 'nothing';
  return section(
    {
      id: 'drills',
      title: 'Drills',
      description: 'Rehearsed attacks on this address.',
      actions:
        canStart && !drill
          ? drawer({ id: 'start-drill', open: 'Start a drill', title: `Drill of ${found.address}` }, start)
          : null,
    },
    [
      drill && [html`<h3>The drill was not started</h3>`, start],
      refreshing(
        { id: 'drill-list', url: own, everySeconds: 15 },
        drillTable(request, {
          path,
          drills,
          thresholds: found.thresholds,
          csrfToken: viewer.canChange ? csrfToken : null,
          nowMs,
        }),
      ),
    ],
  );
}

/** What applies, from the nearest level to the widest. */
function levelList({ site, found, nowMs }: ProtectedAddressPage): Content {
  const { applying, servers, settings } = found;
  const path = `/sites/${site.id}/protection`;
  const own = (entry: ServerSettings | null) => (entry ? changedText(entry, nowMs) : 'none of its own');
  const server = servers[0];
  return definitionList([
    { term: 'Address', value: own(applying.address) },
    {
      term: 'Server',
      value: server
        ? html`${link(serverHref(site.id, server), server.name)}: ${own(applying.server)}`
        : 'no server has this address now',
    },
    {
      term: 'Group',
      value: applying.group
        ? html`${link(`${path}/groups/${applying.group.id}`, applying.group.name)} by ${code(applying.prefix!)}`
        : 'in no group',
    },
    { term: 'Site', value: html`${link(path, site.name)}: ${changedText(settings.site, nowMs)}` },
    {
      term: 'Watched',
      value:
        found.epochs.length === 0
          ? 'no sensor has said so yet'
          : found.epochs.map(
              ({ sensorId, hostName, sinceMs }) =>
                html`<div>by ${link(`/sites/${site.id}/sensors/${sensorId}`, hostName)}, its protected set and thresholds unchanged since ${moment(sinceMs, nowMs)}</div>`,
            ),
    },
  ]);
}

export function serverHref(siteId: number, { clusterId, vmId }: { clusterId: number; vmId: number }): string {
  return `/sites/${siteId}/protection/servers/${clusterId}/${vmId}`;
}

function levelLink({ site, found }: ProtectedAddressPage, level: Level): Content {
  const path = `/sites/${site.id}/protection`;
  const { group } = found.applying;
  if (level === 'group' && group) return link(`${path}/groups/${group.id}`, group.name);
  if (level === 'server') return link(serverHref(site.id, found.servers[0]!), found.servers[0]!.name);
  if (level === 'site') return link(path, 'site');
  return level === 'address' ? 'this address' : levelText(level);
}

function editDrawer(page: ProtectedAddressPage): Html {
  const title = `Thresholds of ${page.found.address}`;
  return drawer({ id: 'edit-address', open: 'Change thresholds', title }, [
    html`<p class="hint">They stay with the address when another server gets it. Thresholds of a server follow the server: open its page to set them.</p>`,
    ownForm(page),
  ]);
}

function ownForm({ site, found, viewer, refused }: ProtectedAddressPage): Html {
  const entry = found.applying.address;
  return thresholdForm({
    action: `/sites/${site.id}/protection/addresses/${encodeURIComponent(found.address)}`,
    csrfToken: viewer.csrfToken,
    submit: 'Save thresholds',
    id: 'address',
    revision: entry?.revision ?? 0,
    texts: refused ? readTexts(refused.typed) : textsOf(entry?.thresholds ?? noChoices),
    inherited: inheritedBy(resolveAbove(found.settings, found.applying, 'address')),
    refused,
  });
}
