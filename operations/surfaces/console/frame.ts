import {
  type Content,
  type Crumb,
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
  breadcrumb: readonly Crumb[];
  toast?: { tone: Tone; text: Content } | undefined;
  /** What was searched for, on the page that shows it. */
  searched?: string | undefined;
}

/** The frame of every console page. */
export function consoleFrame(options: FrameOptions, content: Content): Html {
  const { staff, current } = options;
  return shell(
    {
      area: 'Operations',
      home: '/console/',
      title: options.title,
      navigation: navigationOf(current),
      search: { action: '/console/servers/', placeholder: 'Find a server', value: options.searched },
      palette: { url: '/console/palette', actions: staff.canChange ? consoleActions : [] },
      breadcrumb: options.breadcrumb,
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
  return [
    {
      items: [
        { label: 'Overview', href: '/console/', key: 'o', current: current === 'overview' },
        { label: 'Customers', href: '/console/customers/', key: 'c', current: current === 'customers' },
        { label: 'Servers', href: '/console/servers/', key: 's', current: current === 'servers' },
        { label: 'Traffic', href: '/console/traffic/', key: 'b', current: current === 'traffic' },
      ],
    },
    {
      label: 'Security',
      items: [
        { label: 'Attacks', href: '/console/attacks/', key: 'k', current: current === 'attacks' },
        { label: 'Port scans', href: '/console/port-scans/', key: 'i', current: current === 'port-scans' },
        { label: 'Findings', href: '/console/findings/', key: 'f', current: current === 'findings' },
      ],
    },
    {
      label: 'Health',
      items: [
        { label: 'Clusters', href: '/console/clusters/', key: 'n', current: current === 'clusters' },
        {
          label: 'Reconciliation',
          href: '/console/reconciliation/',
          key: 'r',
          current: current === 'reconciliation',
        },
        { label: 'System', href: '/console/system/', key: 'h', current: current === 'system' },
      ],
    },
    {
      label: 'Setup',
      isFolded: true,
      items: [
        { label: 'Catalog', href: '/console/catalog/', key: 'l', current: current === 'catalog' },
        { label: 'Staff', href: '/console/staff/', key: 't', current: current === 'staff' },
        { label: 'Audit trail', href: '/console/audit/', key: 'a', current: current === 'audit' },
        { label: 'Admin projects', href: '/console/projects/', key: 'p', current: current === 'projects' },
        { label: 'API meter', href: '/console/billing/usage/api/', key: 'm', current: current === 'usage' },
        { label: 'Webhooks', href: '/console/webhooks/', key: 'w', current: current === 'webhooks' },
        { label: 'Appearance', href: '/console/appearance/', current: current === 'appearance' },
        { label: 'Single sign-on', href: '/console/sign-on/', key: 'y', current: current === 'sign-on' },
        {
          label: 'API reference',
          href: '/console/billing/usage/api/docs/',
          key: 'd',
          current: current === 'docs',
        },
      ],
    },
  ];
}
