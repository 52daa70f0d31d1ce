/** The page of one group of prefixes with thresholds of their own, and of a new one. */
import type { FastifyRequest } from 'fastify';
import { thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import {
  groupPrefixesMax,
  type HostGroup,
  noChoices,
  resolveLevels,
  resolveSite,
  type SiteProtection,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import {
  banner,
  type Content,
  code,
  confirm,
  drawer,
  field,
  type Html,
  html,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { changedText, inheritedBy, type Refused, thresholdForm, thresholdTable } from './threshold-parts.ts';
import { readTexts, textsOf } from './threshold-text.ts';

export interface GroupPage {
  site: Site;
  found: SiteProtection;
  /** Null: a new one. */
  group: HostGroup | null;
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
}

export function groupPage(request: FastifyRequest, page: GroupPage): Content {
  const { site, found, group, viewer, nowMs, refused } = page;
  const edit = groupForm(page);
  if (!group)
    return [
      pageHeader({ title: 'New group', state: { tone: 'neutral', text: `Of ${site.name}.` } }),
      section({ title: refused ? 'The group was not saved' : 'Group' }, edit),
    ];
  const warnings = found.warnings.filter((one) => one.groupId === group.id);
  const chosen = [
    { level: 'site' as const, choices: found.settings.site.thresholds },
    { level: 'group' as const, choices: group.thresholds },
  ];
  return [
    pageHeader({
      title: group.name,
      state: {
        tone: warnings.length > 0 ? 'warn' : 'good',
        text: html`${group.prefixes.length === 1 ? '1 prefix' : `${group.prefixes.length} prefixes`}; ${changedText(group, nowMs)}.`,
      },
      actions: [
        link(`/sites/${site.id}/protection/groups/${group.id}/what-if`, 'What if', { kind: 'button' }),
        viewer.canChange &&
          !refused &&
          drawer({ id: 'edit-group', open: 'Change', title: `Change ${group.name}` }, edit),
        viewer.canChange && removeDrawer(page, group),
      ],
    }),
    warnings.map(({ text }) => banner({ tone: 'warn', title: text })),
    refused && section({ title: 'The group was not saved' }, edit),
    section({ title: 'Prefixes' }, html`<p>${group.prefixes.map((prefix) => html`${code(prefix)} `)}</p>`),
    section(
      {
        title: 'Thresholds',
        description: 'Of each address in the group, unless its server or the address itself has its own.',
      },
      thresholdTable(request, resolveLevels(thresholdDefaults, chosen)),
    ),
  ];
}

function groupForm({ site, found, group, viewer, refused }: GroupPage): Html {
  const typed = (name: string, stored: string) => {
    const text = refused?.typed[name];
    return typeof text === 'string' ? text : stored;
  };
  const path = `/sites/${site.id}/protection/groups`;
  return thresholdForm({
    action: group ? `${path}/${group.id}` : path,
    csrfToken: viewer.csrfToken,
    submit: group ? 'Save group' : 'Add group',
    id: group ? `group-${group.id}` : 'group-new',
    revision: group?.revision ?? 0,
    texts: refused ? readTexts(refused.typed) : textsOf(group?.thresholds ?? noChoices),
    inherited: inheritedBy(resolveSite(found.settings.site.thresholds)),
    refused,
    before: [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        maxLength: 80,
        value: typed('name', group?.name ?? ''),
        error: refused?.fields.name,
      }),
      field({
        kind: 'textarea',
        name: 'prefixes',
        label: 'Prefixes',
        required: true,
        hint: `One per line, such as 192.0.2.0/24; at most ${groupPrefixesMax}. Groups may overlap: the longest prefix counts.`,
        rows: Math.max(3, Math.min(12, (group?.prefixes.length ?? 0) + 1)),
        isCode: true,
        value: typed('prefixes', group?.prefixes.join('\n') ?? ''),
        error: refused?.fields.prefixes,
      }),
    ],
  });
}

function removeDrawer({ site, viewer }: GroupPage, group: HostGroup): Html {
  return drawer(
    { id: 'remove-group', open: 'Remove', title: `Remove ${group.name}`, openKind: 'danger' },
    confirm({
      action: `/sites/${site.id}/protection/groups/${group.id}/delete`,
      csrfToken: viewer.csrfToken,
      name: group.name,
      consequence:
        'Its addresses get the thresholds of the next shorter prefix that has a group, else those of the site.',
      submit: 'Remove group',
      fields: { revision: group.revision },
    }),
  );
}
