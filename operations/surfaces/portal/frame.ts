import type { Tenant } from '#operations/accounts/index.ts';
import type { Content, Crumb, FieldOptions, Html, Tone } from '#service-kit/pages/index.ts';
import { shell, toast } from '#service-kit/pages/index.ts';
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
  breadcrumb: readonly Crumb[];
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
  return shell(
    {
      area: 'Customer portal',
      home: '/client/',
      title: options.title,
      navigation: [
        {
          items: [
            { label: 'Servers', href: '/client/', key: 's', current: options.current === 'servers' },
            { label: 'Traffic', href: '/client/traffic/', key: 't', current: options.current === 'traffic' },
            {
              label: 'Networks',
              href: '/client/networks/',
              key: 'n',
              current: options.current === 'networks',
            },
            {
              label: 'Addresses',
              href: '/client/addresses/',
              key: 'i',
              current: options.current === 'addresses',
            },
            {
              label: 'API keys',
              href: '/client/developer/',
              key: 'k',
              current: options.current === 'developer',
            },
            {
              label: 'API reference',
              href: '/client/developer/docs/',
              key: 'd',
              current: options.current === 'docs',
            },
          ],
        },
        {
          label: 'Organization',
          items: [
            {
              label: 'Billing',
              href: '/client/billing/',
              key: 'b',
              current: options.current === 'billing',
            },
            {
              label: 'Activity',
              href: '/client/activity/',
              key: 'a',
              current: options.current === 'activity',
            },
            {
              label: 'Settings',
              href: '/client/settings/',
              key: ',',
              current: options.current === 'settings',
            },
          ],
        },
      ],
      search: { action: '/client/', placeholder: 'Find a server', value: options.searched },
      palette: { url: '/client/palette', actions: portalActions(visitor.actor) },
      breadcrumb: options.breadcrumb,
      person: { name: visitor.person.name, detail: visitor.person.email, href: '/client/account/' },
      csrfToken: visitor.csrfToken,
      ...(options.toast ? { toast: toast(options.toast.tone, options.toast.text) } : {}),
      ...(options.isNarrow ? { isNarrow: true } : {}),
    },
    content,
  );
}
