/** The pages for a forgotten password, and for a first one. */
import {
  banner,
  bareDocument,
  brand,
  type Content,
  field,
  form,
  type Html,
  html,
  link,
} from '#service-kit/pages/index.ts';
import { passwordLengthMin } from '#service-kit/sessions/index.ts';

interface PageOptions {
  area: string;
}

export const passwordHint = `At least ${passwordLengthMin} characters. Several words make a good one.`;

export function resetPage(options: PageOptions & { canSend: boolean; email?: string; error?: string }): Html {
  const { area, canSend, email, error } = options;
  const content = canSend
    ? [
        html`<p class="hint">Give the email address of your account. We email you a link to set a new password.</p>`,
        form({ action: '/reset-password', csrfToken: null, submit: 'Email me a link', error }, [
          field({
            kind: 'email',
            name: 'email',
            label: 'Email',
            required: true,
            maxLength: 254,
            autocomplete: 'username',
            value: email,
            autofocus: true,
          }),
        ]),
      ]
    : banner({
        tone: 'warn',
        title: 'Mail is not available',
        text: 'This installation has no mail server. Ask support for a link to set a new password.',
      });
  return alone(area, 'Reset your password', [content, backToSignIn()]);
}

export function resetSentPage({ area }: PageOptions): Html {
  return alone(area, 'Check your mailbox', [
    html`<p>If this address has an account, a link to set a new password is on its way. It works once, for one
      hour.</p><p class="hint">No mail after some minutes? Check the address and the spam folder.</p>`,
    backToSignIn(),
  ]);
}

export function setPasswordPage(
  options: PageOptions & { secret: string; email: string; error?: string },
): Html {
  const { area, secret, email, error } = options;
  return alone(area, 'Set your password', [
    html`<p class="hint">For ${email}. Your sessions in all browsers end.</p>`,
    form({ action: `/set-password/${secret}`, csrfToken: null, submit: 'Set password' }, [
      // Password managers look for whose password this is.
      html`<input type="hidden" name="username" autocomplete="username" value="${email}">`,
      field({
        kind: 'password',
        name: 'password',
        label: 'New password',
        hint: passwordHint,
        required: true,
        autocomplete: 'new-password',
        autofocus: true,
        error,
      }),
    ]),
  ]);
}

export function linkGonePage({ area }: PageOptions): Html {
  return alone(area, 'This link is not valid', [
    html`<p>It was used, replaced by a newer one, or has expired.</p>`,
    html`<div class="form-buttons">${link('/reset-password', 'Request a new link', { kind: 'primary' })}${link('/sign-in', 'Sign in', { kind: 'button' })}</div>`,
  ]);
}

/** The way out of a page that stands alone. */
export const backToSignIn = () => html`<p>${link('/sign-in', 'Back to sign-in')}</p>`;

/** A page with one card. */
export function alone(area: string, title: string, content: Content): Html {
  return bareDocument(
    { title: `${title} · ${area}` },
    html`<main class="alone">${brand(area, '/')}<div class="card"><h1>${title}</h1>${content}</div></main>`,
  );
}
