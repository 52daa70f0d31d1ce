/** The page of a site's settings: local prefixes, and enrolment tokens. */
import type { NodeName } from '#monitor/placements/index.ts';
import type { ScanSchedule } from '#monitor/scans/index.ts';
import { type ClusterMapping, localCidrsMax, type Site } from '#monitor/sites/index.ts';
import {
  banner,
  type Content,
  code,
  codeBlock,
  definitionList,
  field,
  form,
  formatTime,
  html,
  link,
  pageHeader,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { nodeFields, replaceField, type TypedNode } from '../parts/node-fields.ts';

/** What the request before this page led to. */
export interface ShownAnswer {
  /** Input of a refused form. */
  cidrs?: { text: string; fault: string };
  name?: { text: string; fault: string };
  /** Input of a refused token form. */
  node?: TypedNode;
  /** Input of a refused form of the daily scan. */
  fullScan?: { time: string; zone: string; fault: string };
  /** A new token, in the command that uses it. */
  token?: { expiresAtMs: number; command: string };
}

export interface SettingsPage {
  site: Site;
  /** Those of the site. */
  clusters: readonly ClusterMapping[];
  nodes: NodeName[];
  /** Of the daily full scan. */
  schedule: ScanSchedule;
  /** Where missing manufacturer names are looked up; null: nowhere. */
  registryHost: string | null;
  shown: ShownAnswer;
  viewer: Viewer;
}

export function settingsPage(page: SettingsPage): Content {
  const { site, clusters, shown, viewer } = page;
  return [
    pageHeader({ title: 'Site settings', state: stateOf(site, clusters.length) }),
    section({ title: 'Name' }, viewer.canChange ? nameForm(site, viewer, shown) : site.name),
    section(
      {
        title: 'Local prefixes',
        description:
          'Local prefixes decide which end of a connection is local, and so the direction of applications. They have no other effect.',
      },
      viewer.canChange ? cidrsForm(site, viewer, shown) : cidrsList(site),
    ),
    fullScanSection(page),
    enrolSection(page),
    clusterSection(page),
    section(
      {
        title: 'Programs that read',
        description: 'Grafana, Prometheus and your own programs read the traffic of this site with a token.',
      },
      html`<p>${link(`/sites/${site.id}/read-tokens`, 'Read tokens')}</p>`,
    ),
    section(
      { id: 'manufacturers', title: 'Manufacturer names' },
      html`<p>${manufacturerText(page.registryHost)}</p>`,
    ),
  ];
}

function fullScanSection({ site, schedule, shown, viewer }: SettingsPage): Content {
  const { time, zone } = shown.fullScan ?? schedule;
  const options = { action: `/sites/${site.id}/settings/full-scan`, csrfToken: viewer.csrfToken };
  return section(
    {
      id: 'full-scan',
      title: 'Daily full scan',
      description:
        'When sensors begin to scan all 65,535 TCP and UDP ports of each running server. Daylight saving is followed. A change applies from the next plan of each sensor.',
    },
    viewer.canChange
      ? form({ ...options, submit: 'Save time of the full scan' }, [
          field({
            name: 'time',
            label: 'Time',
            hint: 'Local time, such as 22:00.',
            required: true,
            maxLength: 5,
            value: time,
            error: shown.fullScan?.fault,
          }),
          field({
            name: 'zone',
            label: 'Time zone',
            hint: 'IANA name, such as America/New_York, Europe/Berlin or UTC.',
            required: true,
            maxLength: 64,
            value: zone,
          }),
        ])
      : `${time}, ${zone}`,
  );
}

function enrolSection({ site, nodes, shown, viewer }: SettingsPage): Content {
  return section(
    {
      id: 'enrol',
      title: 'Enrol a sensor',
      description: 'A token enrols one sensor and is valid for an hour. It is shown once.',
    },
    shown.token
      ? tokenBanner(shown.token)
      : viewer.canChange
        ? form(
            {
              action: `/sites/${site.id}/settings/enrolment-tokens`,
              csrfToken: viewer.csrfToken,
              submit: 'Create enrolment token',
            },
            [nodeFields(nodes, shown.node ?? {}), replaceField(shown.node ?? {})],
          )
        : banner({ tone: 'info', title: 'Your role is read-only.' }),
  );
}

function clusterSection({ clusters }: SettingsPage): Content {
  return section(
    {
      title: 'Clusters',
      description: 'Clusters of operations whose servers this site observes.',
    },
    [
      definitionList([
        {
          term: 'Mapped here',
          value:
            clusters.length > 0
              ? clusters.map((mapping) => `cluster ${mapping.clusterId}`).join(', ')
              : 'none',
        },
      ]),
      html`<p>${link('/operations#clusters', 'Map clusters')}</p>`,
    ],
  );
}

function stateOf(site: Site, clusters: number): { tone: Tone; text: string } {
  const prefixes = site.localCidrs.length;
  if (prefixes === 0)
    return { tone: 'warn', text: 'No local prefixes yet, so applications have no direction.' };
  const local = prefixes === 1 ? '1 local prefix' : `${prefixes} local prefixes`;
  const mapped = clusters === 1 ? '1 cluster is' : `${clusters === 0 ? 'no' : clusters} clusters are`;
  return { tone: 'info', text: `${local}; ${mapped} mapped here.` };
}

function nameForm(site: Site, viewer: Viewer, shown: ShownAnswer) {
  return form(
    { action: `/sites/${site.id}/settings/name`, csrfToken: viewer.csrfToken, submit: 'Rename' },
    field({
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 80,
      value: shown.name?.text ?? site.name,
      error: shown.name?.fault,
    }),
  );
}

function cidrsForm(site: Site, viewer: Viewer, shown: ShownAnswer) {
  return form(
    {
      action: `/sites/${site.id}/settings/local-cidrs`,
      csrfToken: viewer.csrfToken,
      submit: 'Save local prefixes',
    },
    field({
      kind: 'textarea',
      name: 'local_cidrs',
      label: 'Prefixes',
      hint: `One per line, IPv4 or IPv6, such as 192.0.2.0/24; at most ${localCidrsMax}. Sensors apply them with their next plan.`,
      rows: Math.max(4, Math.min(16, site.localCidrs.length + 1)),
      isCode: true,
      value: shown.cidrs?.text ?? site.localCidrs.join('\n'),
      error: shown.cidrs?.fault,
    }),
  );
}

function cidrsList(site: Site) {
  return definitionList([
    {
      term: 'Prefixes',
      value: site.localCidrs.length > 0 ? site.localCidrs.map((cidr) => code(cidr)) : 'none',
    },
  ]);
}

function tokenBanner({ expiresAtMs, command }: NonNullable<ShownAnswer['token']>): Content {
  return [
    banner({
      tone: 'good',
      title: 'This token is shown only now',
      text: `Valid until ${formatTime(expiresAtMs)}, for one sensor.`,
    }),
    codeBlock({ label: 'On the hypervisor', code: command }),
  ];
}

/** Source of manufacturer names, for all sites (NET-2.1.5). */
function manufacturerText(registryHost: string | null): string {
  const bundled = 'Manufacturers of network interfaces come from a built-in table.';
  return registryHost === null
    ? `${bundled} No registry is used: SVC_MAC_VENDOR_LOOKUP_URL is empty.`
    : `${bundled} For missing prefixes, “./svc monitor resolve_mac_vendors” queries ${registryHost}, one per second, and sends only the first 24 bits of a MAC. An empty SVC_MAC_VENDOR_LOOKUP_URL disables this.`;
}
