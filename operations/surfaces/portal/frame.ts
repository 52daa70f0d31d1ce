import type { Tenant } from '#operations/accounts/index.ts';
import type { Content, Crumb, FieldOptions, Html, Tone } from '#service-kit/pages/index.ts';
import { crumbsTo, shell, toast } from '#service-kit/pages/index.ts';
import type { Visitor } from './guard.ts';
import { portalActions } from './palette/palette.routes.ts';

export interface FrameOptions {
  visitor: Visitor;
  title: string;
  current:
    | 'servers'
    | 'traffic'
    | 'networks'
    | 'addresses'
    | 'developer'
    | 'docs'
    | 'billing'
    | 'activity'
    | 'settings'
    | 'account';
  /** Default: from the item of the navigation. */
  breadcrumb?: readonly Crumb[];
  toast?: { tone: Tone; text: Content } | undefined;
  isNarrow?: boolean;
  /** What was searched for, on the page that shows it. */
  searched?: string | undefined;
}

/** Which workspace a form is about, where there are several. */
export const workspaceField = (
  tenants: readonly Pick<Tenant, 'id' | 'name'>[],
  value = String(tenants[0]?.id),
): FieldOptions | false =>
  tenants.length > 1 && {
    ...{ kind: 'select', name: 'tenant', label: 'Workspace', value },
    options: tenants.map(({ id, name }) => ({ value: String(id), label: name })),
  };

/** The frame of every portal page. */
export function portalFrame(options: FrameOptions, content: Content): Html {
  const { visitor } = options;
  const item = (name: FrameOptions['current'], label: string, href: string, key: string) => ({
    label,
    href,
    key,
    current: options.current === name,
  });
  const navigation = [
    {
      items: [
        item('servers', 'Servers', '/client/', 's'),
        item('traffic', 'Traffic', '/client/traffic/', 't'),
        item('networks', 'Networks', '/client/networks/', 'n'),
        item('addresses', 'Addresses', '/client/addresses/', 'i'),
        item('developer', 'API keys', '/client/developer/', 'k'),
        item('docs', 'API reference', '/client/developer/docs/', 'd'),
      ],
    },
    {
      label: 'Organization',
      items: [
        item('billing', 'Billing', '/client/billing/', 'b'),
        item('activity', 'Activity', '/client/activity/', 'a'),
        item('settings', 'Settings', '/client/settings/', ','),
      ],
    },
  ];
  return shell(
    {
      area: 'Customer portal',
      home: '/client/',
      title: options.title,
      navigation,
      search: { action: '/client/', placeholder: 'Find a server', value: options.searched },
      palette: { url: '/client/palette', actions: portalActions(visitor.actor) },
      breadcrumb: options.breadcrumb ?? crumbsTo(options.title, navigation),
      person: { name: visitor.person.name, detail: visitor.person.email, href: '/client/account/' },
      csrfToken: visitor.csrfToken,
      ...(options.toast ? { toast: toast(options.toast.tone, options.toast.text) } : {}),
      ...(options.isNarrow ? { isNarrow: true } : {}),
    },
    content,
  );
}
