/** The form that ignores one finding of a server. */
import type { Site } from '#monitor/sites/index.ts';
import { ignoreReasonMax } from '#monitor/vulnerabilities/index.ts';
import {
  type Content,
  code,
  definitionList,
  field,
  form,
  hiddenField,
  html,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import { type FindingLine, portText } from './finding-tables.ts';
import { ratingBadge, remarks, softwareText } from './finding-text.ts';
import { serverHref } from './paths.ts';

export interface IgnorePage {
  site: Site;
  name: string;
  line: FindingLine;
  viewer: Viewer;
  /** A refused form. */
  refused?: { message: string; reason: string; until: string } | undefined;
}

export function ignorePage({ site, name, line, viewer, refused }: IgnorePage): Content {
  const { service, finding } = line;
  const href = serverHref(site.id, service);
  const { address, transport, port, fingerprint } = service;
  return [
    pageHeader({ title: `Ignore ${finding.cve}` }),
    definitionList([
      { term: 'Server', value: link(href, name) },
      { term: 'Service', value: html`${code(portText(service))} of ${code(address)}` },
      { term: 'Software', value: softwareText(service) },
      { term: 'Severity', value: [ratingBadge(finding), ' ', remarks(finding)] },
      { term: 'Summary', value: finding.summary },
    ]),
    section(
      {
        title: 'Reason',
        description:
          'The finding moves to the ignored ones. Operations does not list it for the customer any more, and counts it as ignored by operators. Another version of the software is not ignored.',
      },
      form(
        {
          action: `${href}/ignore`,
          csrfToken: viewer.csrfToken,
          submit: 'Ignore finding',
          cancel: link(href, 'Cancel'),
          error: refused?.message,
        },
        [
          Object.entries({ address, transport, port, fingerprint, cve: finding.cve }).map(([key, value]) =>
            hiddenField(key, value),
          ),
          field({
            name: 'reason',
            label: 'Reason',
            required: true,
            maxLength: ignoreReasonMax,
            value: refused?.reason ?? '',
            hint: 'Such as: the module is not loaded. It is kept in the audit trail.',
          }),
          field({
            kind: 'datetime-local',
            name: 'until',
            label: 'Until, UTC',
            value: refused?.until ?? '',
            hint: 'Leave empty to ignore it until it is ended by hand.',
          }),
        ],
      ),
    ),
  ];
}
