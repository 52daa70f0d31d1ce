/** One endpoint: what it is told, what became of it, and everything that can be done about it. */
import type { Delivery } from '#operations/views/index.ts';
import type { Attempt, Endpoint } from '#operations/webhooks/index.ts';
import {
  actionButton,
  age,
  badge,
  banner,
  type Content,
  codeBlock,
  confirm,
  definitionList,
  form,
  formatCount,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  section,
  type Tone,
  table,
  utcTime,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { type EndpointForm, endpointBadge, endpointFields, newSecret } from './webhooks.page.ts';

export interface WebhookPageOptions {
  visitor: Visitor;
  endpoint: Endpoint;
  deliveries: readonly Delivery[];
  nowMs: number;
  /** A secret that was made by this very request. */
  secret?: string;
  toast?: { tone: Tone; text: string };
  error?: string;
  form?: EndpointForm;
  confirmError?: string;
}

export function webhookPage(options: WebhookPageOptions): Html {
  const { visitor, endpoint, nowMs, secret } = options;
  const path = `/client/developer/webhooks/${endpoint.id}`;
  const act = (what: string, label: string, fields: Record<string, string> = {}) =>
    actionButton({ action: `${path}/${what}`, csrfToken: visitor.csrfToken, label, fields });
  const isDisabled = endpoint.disabledAt !== null;
  return portalFrame(
    {
      visitor,
      title: endpoint.url,
      current: 'developer',
      breadcrumb: crumbs(new URL(endpoint.url).host),
      toast: options.toast,
    },
    [
      pageHeader({
        title: new URL(endpoint.url).host,
        state: stateOf(endpoint),
        actions: isDisabled
          ? act('enable', 'Enable')
          : [act('test', 'Send a test'), act('disable', 'Disable')],
      }),
      secret !== undefined && newSecret(secret),
      definitionList([
        { term: 'Address', value: html`<code>${endpoint.url}</code>` },
        { term: 'State', value: endpointBadge(endpoint) },
        { term: 'Description', value: endpoint.description === '' ? 'none' : endpoint.description },
        { term: 'Created', value: age(endpoint.createdAt.getTime(), nowMs) },
      ]),
      deliveryTable(options, path, isDisabled),
      section(
        { title: 'Edit endpoint' },
        form({ action: path, csrfToken: visitor.csrfToken, submit: 'Save', error: options.error }, [
          endpointFields(options.form ?? endpoint),
        ]),
      ),
      secretSection(endpoint, act),
      section(
        { title: 'Delete endpoint' },
        confirm({
          action: `${path}/delete`,
          csrfToken: visitor.csrfToken,
          name: new URL(endpoint.url).host,
          consequence: 'Nothing is sent there any more, and its log is gone.',
          submit: 'Delete endpoint',
          error: options.confirmError,
        }),
      ),
    ],
  );
}

const crumbs = (name: string) => [
  { label: 'API keys', href: '/client/developer/' },
  { label: 'Webhooks', href: '/client/developer/webhooks/' },
  { label: name },
];

function stateOf(endpoint: Endpoint): { tone: Tone; text: string } {
  if (endpoint.disabledReason === 'gone')
    return { tone: 'warn', text: 'Disabled, because it answered 410. Pending deliveries were cancelled.' };
  if (endpoint.disabledAt !== null) return { tone: 'neutral', text: 'Disabled: no deliveries.' };
  if (endpoint.failingSince === null) return { tone: 'good', text: 'Delivering.' };
  const since = formatTime(endpoint.failingSince.getTime());
  const failures = endpoint.consecutiveFailures;
  const times = failures === 1 ? 'one attempt' : `${formatCount(failures)} attempts in a row`;
  return {
    tone: 'bad',
    text: `Deliveries are failing since ${since}: ${times}. We retry for three days.`,
  };
}

const statusTones: Record<Delivery['status'], Tone> = {
  pending: 'info',
  delivered: 'good',
  failed: 'bad',
  cancelled: 'neutral',
};

function deliveryTable(
  { deliveries, visitor, nowMs }: WebhookPageOptions,
  path: string,
  isDisabled: boolean,
): Html {
  return table<Delivery>({
    caption: 'Deliveries',
    card: { line: ['status', 'happened'] },
    captionVisible: true,
    columns: [
      {
        key: 'type',
        header: 'Event',
        kind: 'code',
        cell: (row) => link(`${path}/deliveries/${row.id}`, row.type),
      },
      { key: 'status', header: 'State', cell: (row) => badge(statusTones[row.status], row.status) },
      { key: 'happened', header: 'Happened', cell: (row) => age(row.occurredAt.getTime(), nowMs) },
      { key: 'attempts', header: 'Attempts', kind: 'figure', cell: (row) => formatCount(row.attempts) },
      {
        key: 'last',
        header: 'Last answer',
        cell: (row) =>
          row.lastError ?? (row.lastStatusCode === null ? 'none yet' : String(row.lastStatusCode)),
      },
      {
        key: 'next',
        header: 'Next attempt',
        cell: (row) => (row.status === 'pending' ? age(row.nextAttemptAt.getTime(), nowMs) : 'none'),
      },
      {
        key: 'again',
        header: '',
        kind: 'actions',
        cell: (row) =>
          row.status === 'pending' || isDisabled
            ? ''
            : actionButton({
                action: `${path}/replay`,
                csrfToken: visitor.csrfToken,
                label: 'Send again',
                fields: { delivery: row.id },
              }),
      },
    ],
    rows: deliveries,
    empty: {
      title: 'No deliveries yet',
      text: 'Each delivery appears here with the answer of your receiver. Send a test event to see one.',
    },
  });
}

function secretSection(endpoint: Endpoint, act: (what: string, label: string) => Html): Html {
  const until = endpoint.previousSecretUntil;
  return section(
    {
      title: 'Secret',
      description: 'Rotate it if it was exposed. The previous secret stays valid for 24 hours.',
      actions: act('rotate', 'Change the secret'),
    },
    until !== null &&
      banner({
        tone: 'info',
        title: `Two signatures until ${formatTime(until.getTime())}`,
        text: 'Deliveries are signed with the new and the previous secret, so you can switch without losing events.',
      }),
  );
}

export interface DeliveryPageOptions {
  visitor: Visitor;
  endpoint: Endpoint;
  publicId: string;
  body: object;
  attempts: readonly Attempt[];
  nowMs: number;
}

export function deliveryPage({
  visitor,
  endpoint,
  publicId,
  body,
  attempts,
  nowMs,
}: DeliveryPageOptions): Html {
  const host = new URL(endpoint.url).host;
  const last = attempts[0];
  const state: { tone: Tone; text: Content } =
    last === undefined
      ? { tone: 'info', text: 'Not sent yet.' }
      : last.error === null
        ? { tone: 'good', text: html`Delivered ${age(last.at.getTime(), nowMs)}.` }
        : { tone: 'bad', text: html`Failed: ${last.error}, ${age(last.at.getTime(), nowMs)}.` };
  return portalFrame(
    {
      visitor,
      title: publicId,
      current: 'developer',
      breadcrumb: [
        ...crumbs(host).slice(0, 2),
        { label: host, href: `/client/developer/webhooks/${endpoint.id}` },
        { label: 'Delivery' },
      ],
    },
    [
      pageHeader({ title: 'Delivery', state }),
      definitionList([{ term: 'webhook-id', value: html`<code>${publicId}</code>` }]),
      codeBlock({ label: 'Body', code: JSON.stringify(body, null, 2) }),
      table<Attempt>({
        caption: 'Attempts',
        card: { line: ['status', 'at'] },
        captionVisible: true,
        columns: [
          { key: 'number', header: 'Attempt', cell: (row) => formatCount(row.number) },
          { key: 'at', header: 'When', kind: 'time', cell: (row) => utcTime(row.at.getTime(), 'seconds') },
          {
            key: 'took',
            header: 'Took',
            unit: 'ms',
            kind: 'figure',
            cell: (row) => formatCount(row.durationMs),
          },
          {
            key: 'status',
            header: 'Answer',
            kind: 'figure',
            cell: (row) => (row.statusCode === null ? 'none' : String(row.statusCode)),
          },
          { key: 'error', header: 'Error', cell: (row) => row.error ?? 'it was taken' },
        ],
        rows: attempts,
        empty: { title: 'No attempt yet', text: 'The first attempt starts in a moment.' },
      }),
    ],
  );
}
