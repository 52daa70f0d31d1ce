/** What the page "Your account" says about second factors, and the pages on which one is set up. */
import { encode } from 'uqr';
import {
  actionButton,
  age,
  askButton,
  badge,
  banner,
  type Content,
  code,
  codeBlock,
  field,
  form,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { FactorState, PasskeySummary } from '#service-kit/second-factors/index.ts';
import { codeForm } from './code-form.ts';
import { passkeyButton } from './passkey-button.ts';

interface FactorView {
  base: string;
  csrfToken: string;
  state: FactorState;
  passkeys: readonly PasskeySummary[];
  /** False on a bare address, where browsers allow no passkeys. */
  canAddPasskey: boolean;
  nowMs: number;
  /** Everyone of this kind must have a second factor. */
  isRequired: boolean;
}

/** The section about second factors. */
export function factorSection(view: FactorView): Html {
  const { state, isRequired } = view;
  return section(
    {
      title: 'Second factor',
      id: 'factors',
      description:
        'An extra step when you sign in and before sensitive changes. Adding one ends your sessions in other browsers.',
    },
    [
      isRequired &&
        !state.hasAny &&
        banner({
          tone: 'warn',
          title: 'Set up a second factor to go on',
          text: 'It is required here. The other pages open when it is set up.',
        }),
      passkeyPart(view),
      appPart(view),
      state.hasAny && recoveryPart(view),
    ],
  );
}

function passkeyPart({ base, csrfToken, passkeys, canAddPasskey, nowMs }: FactorView): Content {
  const add = canAddPasskey
    ? actionButton({ action: `${base}/passkeys/new`, csrfToken, label: 'Add a passkey', kind: 'primary' })
    : html`<p class="hint">Passkeys need a host name. Open this page at its name instead of its address.</p>`;
  if (passkeys.length === 0)
    return html`<div class="form-buttons"><p>Passkeys: ${badge('neutral', 'none')}</p>${add}</div>`;
  return [
    table<PasskeySummary>({
      caption: 'Passkeys',
      card: { line: ['used', 'added'] },
      captionVisible: true,
      columns: [
        { key: 'name', header: 'Passkey', cell: (passkey) => passkey.name },
        { key: 'added', header: 'Added', cell: (passkey) => formatTime(passkey.createdAt.getTime()) },
        {
          key: 'used',
          header: 'Last used',
          cell: (passkey) =>
            passkey.lastUsedAt === null ? 'never' : age(passkey.lastUsedAt.getTime(), nowMs),
        },
        {
          key: 'remove',
          header: '',
          kind: 'actions',
          cell: (passkey) =>
            askButton(
              {
                id: `remove-passkey-${passkeys.indexOf(passkey)}`,
                label: 'Remove',
                title: `Remove the passkey ${passkey.name}?`,
                action: `${base}/passkeys/remove`,
                csrfToken,
                fields: { passkey: passkey.id },
              },
              'You can no longer sign in with it. Delete it on your device too.',
            ),
        },
      ],
      rows: passkeys,
      empty: { title: 'None', text: 'Your passkeys appear here.' },
    }),
    html`<div class="form-buttons">${add}</div>`,
  ];
}

/** Where a passkey is made: the one page that needs a script. */
export function newPasskeyPage(options: {
  base: string;
  csrfToken: string;
  json: string;
  name: string;
  error?: string | undefined;
}): Content {
  const { base, csrfToken, json, name, error } = options;
  return [
    pageHeader({
      title: 'Add a passkey',
      state: {
        tone: 'info',
        text: 'Your browser asks for your finger, your face or a PIN, and keeps the key.',
      },
    }),
    html`<noscript>${banner({ tone: 'warn', title: 'Passkeys need JavaScript', text: 'Without it, set up an authenticator app.' })}</noscript>`,
    form({ action: `${base}/passkeys`, csrfToken, error }, [
      field({ name: 'name', label: 'Name', value: name, required: true, maxLength: 80 }),
      passkeyButton({ label: 'Create passkey', field: 'passkey', source: 'create', json }),
    ]),
    html`<p>${link(`${base}/`, 'Cancel')}</p>`,
  ];
}

function appPart({ base, csrfToken, state }: FactorView): Content {
  if (!state.hasTotp)
    return html`<div class="form-buttons"><p>Authenticator app: ${badge('neutral', 'not set up')}</p>${actionButton(
      {
        action: `${base}/app/new`,
        csrfToken,
        label: 'Set up an authenticator app',
        kind: 'primary',
      },
    )}</div>`;
  return html`<div class="form-buttons"><p>Authenticator app: ${badge('good', 'in use')}</p>${askButton(
    {
      id: 'remove-app',
      label: 'Remove',
      title: 'Remove the authenticator app?',
      action: `${base}/app/remove`,
      csrfToken,
    },
    'Its codes are no longer accepted.',
  )}</div>`;
}

function recoveryPart({ base, csrfToken, state }: FactorView): Content {
  const left = state.recoveryCodesLeft;
  return html`<div class="form-buttons"><p>Recovery codes: ${badge(left < 3 ? 'warn' : 'good', `${left} left`)}</p>${askButton(
    {
      id: 'new-recovery-codes',
      label: 'New recovery codes',
      title: 'Make new recovery codes?',
      openKind: 'button',
      action: `${base}/recovery`,
      csrfToken,
    },
    'Your current codes stop working. The new codes are shown once, on the next page.',
  )}</div>`;
}

/** Where an authenticator app is set up: the QR code, the same as text, and the first code. */
export function newAppPage(options: {
  base: string;
  csrfToken: string;
  secret: string;
  uri: string;
  error?: string | undefined;
}): Content {
  const { base, csrfToken, secret, uri, error } = options;
  return [
    pageHeader({
      title: 'Set up an authenticator app',
      state: { tone: 'info', text: 'Scan the code with your app, then type the six digits that it shows.' },
    }),
    qrCode(uri),
    html`<p>Or type this key into the app: ${code(secret.replace(/(.{4})(?=.)/g, '$1 '))}</p>`,
    codeForm({
      action: `${base}/app/confirm`,
      csrfToken,
      submit: 'Confirm',
      hint: 'The six digits that the app shows now.',
      error,
    }),
    html`<p>${link(`${base}/`, 'Cancel')}</p>`,
  ];
}

/** Recovery codes, on the one page that ever shows them. */
export function recoveryCodesPage(options: { base: string; codes: readonly string[] }): Content {
  return [
    pageHeader({
      title: 'Your recovery codes',
      state: {
        tone: 'warn',
        text: 'Store them where you can find them without your phone. They are shown only now.',
      },
    }),
    html`<p>Each code works once, in place of your second factor.</p>`,
    codeBlock({ label: 'Recovery codes', code: options.codes.join('\n') }),
    html`<p>${link(`${options.base}/`, 'I have stored them', { kind: 'primary' })}</p>`,
  ];
}

/** A QR code as one path of SVG: dark on light in both themes, because scanners expect it so. */
function qrCode(text: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: 2 });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return html`<svg class="qr-code" role="img" aria-label="QR code for your authenticator app" viewBox="0 0 ${size} ${size}"><rect width="${size}" height="${size}" fill="#fff"></rect><path d="${path}" fill="#000"></path></svg>`;
}
