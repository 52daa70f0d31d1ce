/** Plan, disk, snapshots and root password of a server, on its Settings tab, and the page that shows a new password once. */

import type { Capability } from '#contracts/capabilities.ts';
import type { Image, Plan } from '#operations/catalog/index.ts';
import type { Server, Snapshot } from '#operations/views/index.ts';
import {
  askButton,
  banner,
  type Content,
  codeBlock,
  confirm,
  field,
  form,
  formatMoney,
  type Html,
  html,
  link,
  otherSubmit,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { type SnapshotState, snapshotSection } from './snapshots.page.ts';

export interface MachineOptions {
  visitor: Visitor;
  server: Server;
  capabilities: readonly Capability[];
  plans: readonly Plan[];
  images: readonly Image[];
  snapshots: readonly Snapshot[];
  /** Of one server. */
  snapshotsMax: number;
  /** What a refused or rehearsed form held, and what is said of it. */
  resize?: { plan: string; keepDisk: boolean; onTimeout: string; error?: string; forecast?: Content };
  rebuild?: { image: string; error: string };
  resetError?: string;
  snapshot?: SnapshotState;
}

/** What the hypervisor can do with this server now; nothing for one that is not ready. */
export function machineSections(options: MachineOptions): Content {
  const { server, capabilities } = options;
  if (server.provisioningState !== 'ready') return '';
  return [
    capabilities.includes('resize') && resizeSection(options),
    capabilities.includes('reset_password') && passwordSection(options),
    capabilities.includes('snapshots') && snapshotSection(options),
    capabilities.includes('rebuild') && rebuildSection(options),
  ];
}

const priceOf = (plan: Pick<Plan, 'hourlyQuanta' | 'monthlyCapQuanta'>) =>
  `${formatMoney(plan.hourlyQuanta)} an hour, at most ${formatMoney(plan.monthlyCapQuanta)} a month`;

function resizeSection({ server, visitor, plans, resize }: MachineOptions): Content {
  const path = `/client/servers/${server.id}/resize`;
  const able = plans.filter((plan) => plan.diskGb >= server.diskGb);
  const description = `Now ${server.planName}: ${server.vcpus} vCPU, ${server.memoryMb / 1024} GiB memory, ${server.diskGb} GB disk; ${priceOf(server)}. A running server is shut down and started again. Plans with a smaller disk are not offered: a disk never shrinks.`;
  return section({ title: 'Plan', id: 'resize', description }, [
    resize?.forecast !== undefined &&
      banner({ tone: 'info', title: 'Nothing was changed yet', text: resize.forecast }),
    form(
      {
        action: path,
        csrfToken: visitor.csrfToken,
        submit: 'Resize',
        submitKind: 'button',
        cancel: otherSubmit({ action: `${path}/check`, label: 'Check the price' }),
        error: resize?.error,
      },
      [
        field({
          kind: 'select',
          name: 'plan',
          label: 'New plan',
          required: true,
          value: resize?.plan ?? server.planSlug,
          options: able.map((plan) => ({
            value: plan.slug,
            label: `${plan.name}: ${plan.vcpus} vCPU, ${plan.memoryMb / 1024} GiB, ${plan.diskGb} GB`,
          })),
        }),
        field({
          kind: 'checkbox',
          name: 'keep_disk',
          label: `Keep the disk of ${server.diskGb} GB`,
          hint: 'Then the server can return to a plan with a smaller disk.',
          checked: resize?.keepDisk ?? false,
        }),
        field({
          kind: 'select',
          name: 'on_timeout',
          label: 'If the operating system does not shut down in 2 minutes',
          value: resize?.onTimeout ?? 'fail',
          options: [
            { value: 'fail', label: 'Change nothing' },
            { value: 'stop', label: 'Cut the power' },
          ],
        }),
      ],
    ),
  ]);
}

function passwordSection({ server, visitor, resetError }: MachineOptions): Content {
  const description =
    'Sets a new root password inside the running server. Without qemu-guest-agent it holds from the next boot, by cloud-init.';
  return section({ title: 'Root password', id: 'password', description }, [
    resetError !== undefined &&
      banner({ tone: 'bad', title: 'The password was not reset', text: resetError }),
    html`<div>${askButton(
      {
        ...{ id: 'ask-password', label: 'Reset the root password', title: 'Reset the root password?' },
        ...{ openKind: 'button' as const, csrfToken: visitor.csrfToken, fields: {} },
        action: `/client/servers/${server.id}/reset-password`,
      },
      'The present root password stops working. The new one is shown once, on the next page.',
    )}</div>`,
  ]);
}

function rebuildSection({ server, visitor, images, rebuild }: MachineOptions): Content {
  const isOffered = images.some((image) => image.slug === server.imageSlug);
  const own = { slug: server.imageSlug, name: `${server.imageName}, as now` };
  return section(
    { title: 'Rebuild', id: 'rebuild' },
    confirm({
      action: `/client/servers/${server.id}/rebuild`,
      csrfToken: visitor.csrfToken,
      name: server.name,
      consequence:
        'Everything on the disk is lost: the server gets a new disk from the image, and a new root password. Its addresses, networks, firewall, SSH keys and price stay.',
      submit: 'Rebuild server',
      content: field({
        kind: 'select',
        name: 'image',
        label: 'Image',
        required: true,
        value: rebuild?.image ?? server.imageSlug,
        options: (isOffered ? images : [own, ...images]).map((image) => ({
          value: image.slug,
          label: image.name,
        })),
      }),
      error: rebuild?.error,
    }),
  );
}

/** The answer to a rebuild and to a new password: the only page that ever shows it. */
export function newPasswordPage(
  { visitor, server }: { visitor: Visitor; server: Server },
  rootPassword: string,
  text: string,
): Html {
  const title = `${server.name} gets a new root password`;
  const breadcrumb = [
    { label: 'Servers', href: '/client/' },
    { label: server.name, href: `/client/servers/${server.id}` },
    { label: 'New root password' },
  ];
  return portalFrame({ visitor, title, current: 'servers', breadcrumb, isNarrow: true }, [
    pageHeader({
      title,
      state: { tone: 'info', text },
      actions: link(`/client/servers/${server.id}`, 'Go to the server', { kind: 'primary' }),
    }),
    banner({
      tone: 'warn',
      title: 'Copy the root password now',
      text: 'It is shown on this page only.',
    }),
    codeBlock({ code: rootPassword, label: 'Root password' }),
  ]);
}
