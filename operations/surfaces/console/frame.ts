import {
  type Content,
  type Crumb,
  crumbsTo,
  type Html,
  type NavigationGroup,
  shell,
  type Tone,
  toast,
} from '#service-kit/pages/index.ts';
import type { Staff } from './guard.ts';
import { consoleActions } from './palette/palette.routes.ts';

export interface FrameOptions {
  staff: Staff;
  title: string;
  current:
    | 'overview'
    | 'catalog'
    | 'customers'
    | 'reconciliation'
    | 'staff'
    | 'audit'
    | 'servers'
    | 'traffic'
    | 'attacks'
    | 'port-scans'
    | 'findings'
    | 'clusters'
    | 'projects'
    | 'usage'
    | 'docs'
    | 'webhooks'
    | 'sign-on'
    | 'system'
    | 'appearance'
    | 'account';
  /** Default: from the item of the navigation. */
  breadcrumb?: readonly Crumb[];
  toast?: { tone: Tone; text: Content } | undefined;
  /** What was searched for, on the page that shows it. */
  searched?: string | undefined;
}

/** The frame of every console page. */
export function consoleFrame(options: FrameOptions, content: Content): Html {
  const { staff } = options;
  const navigation = navigationOf(options.current);
  return shell(
    {
      area: 'Operations',
      home: '/console/',
      title: options.title,
      navigation,
      search: { action: '/console/servers/', placeholder: 'Find a server', value: options.searched },
      palette: { url: '/console/palette', actions: staff.canChange ? consoleActions : [] },
      breadcrumb: options.breadcrumb ?? crumbsTo(options.title, navigation),
      person: {
        name: staff.person.name,
        detail: staff.canChange ? 'operator' : 'support, read-only',
        href: '/console/account/',
      },
      csrfToken: staff.csrfToken,
      ...(options.toast ? { toast: toast(options.toast.tone, options.toast.text) } : {}),
    },
    content,
  );
}

function navigationOf(current: FrameOptions['current']): readonly NavigationGroup[] {
  const item = (name: typeof current, label: string, href: string, key?: string) => ({
    ...{ label, href, current: current === name },
    ...(key !== undefined && { key }),
  });
  return [
    {
      items: [
        item('overview', 'Overview', '/console/', 'o'),
        item('customers', 'Customers', '/console/customers/', 'c'),
        item('servers', 'Servers', '/console/servers/', 's'),
        item('traffic', 'Traffic', '/console/traffic/', 'b'),
      ],
    },
    {
      label: 'Security',
      items: [
        item('attacks', 'Attacks', '/console/attacks/', 'k'),
        item('port-scans', 'Port scans', '/console/port-scans/', 'i'),
        item('findings', 'Findings', '/console/findings/', 'f'),
      ],
    },
    {
      label: 'Health',
      items: [
        item('clusters', 'Clusters', '/console/clusters/', 'n'),
        item('reconciliation', 'Reconciliation', '/console/reconciliation/', 'r'),
        item('system', 'System', '/console/system/', 'h'),
      ],
    },
    {
      label: 'Setup',
      isFolded: true,
      items: [
        item('catalog', 'Catalog', '/console/catalog/', 'l'),
        item('staff', 'Staff', '/console/staff/', 't'),
        item('audit', 'Audit trail', '/console/audit/', 'a'),
        item('projects', 'Admin projects', '/console/projects/', 'p'),
        item('usage', 'API meter', '/console/billing/usage/api/', 'm'),
        item('webhooks', 'Webhooks', '/console/webhooks/', 'w'),
        item('appearance', 'Appearance', '/console/appearance/'),
        item('sign-on', 'Single sign-on', '/console/sign-on/', 'y'),
        item('docs', 'API reference', '/console/billing/usage/api/docs/', 'd'),
      ],
    },
  ];
}
