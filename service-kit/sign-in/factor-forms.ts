import type { FastifyRequest } from 'fastify';
import {
  assetUrl,
  type Content,
  field,
  form,
  type Html,
  hiddenField,
  html,
  isLocalPath,
} from '#service-kit/pages/index.ts';
import { type PasskeySite, passkeySite } from '#service-kit/second-factors/index.ts';

/** The path that gives the options of a sign-in by passkey. */
export const passkeyOptionsPath = '/sign-in/passkey/options';

/**
 * The site that this browser is at: the public URL where one is set, else what the request says. A passkey signs for
 * one host name, so a wrong `Host` header makes an answer that fits nothing. Null on a bare address.
 */
export function siteOf(request: FastifyRequest, publicUrl: string | null): PasskeySite | null {
  return passkeySite(publicUrl ?? `${request.protocol}://${request.host}`);
}

/** A button in a form; its field carries the browser's answer. Hidden where there is no script or no support. */
export function passkeyButton(options: {
  label: string;
  field: string;
  source: string;
  json?: string;
}): Html {
  const { label, field, source, json = '' } = options;
  return html`<div class="passkey needs-script" data-passkey="${source}" data-options="${json}"><input type="hidden" name="${field}" value=""><button type="button" class="button">${label}</button><p class="field-error" role="alert" hidden></p></div><script type="module" src="${assetUrl('passkeys.js')}"></script>`;
}

/** The whole form of a sign-in by passkey. */
export function passkeySignInForm(next: string | undefined): Html {
  return form({ action: '/sign-in/passkey', csrfToken: null }, [
    isLocalPath(next) ? hiddenField('next', next) : '',
    passkeyButton({ label: 'Sign in with a passkey', field: 'passkey', source: passkeyOptionsPath }),
  ]);
}

/** Asks for a code of the authenticator app, or a recovery code. */
export function codeForm(options: {
  action: string;
  csrfToken: string | null;
  submit: string;
  /** The name of the field; default `code`. */
  name?: string;
  fields?: Content;
  /** False for a person whose only code is a recovery code. */
  hasTotp?: boolean;
  /** Default: what signs in, the app's digits or a recovery code. */
  hint?: string;
  error?: string | undefined;
}): Html {
  const { action, csrfToken, submit, hasTotp = true } = options;
  return form({ action, csrfToken, submit }, [
    options.fields ?? '',
    field({
      name: options.name ?? 'code',
      label: 'Code',
      hint:
        options.hint ??
        (hasTotp
          ? 'Six digits of your authenticator app, or one of your recovery codes.'
          : 'One of your recovery codes.'),
      required: true,
      maxLength: 100,
      autocomplete: 'one-time-code',
      isCode: true,
      autofocus: true,
      error: options.error,
    }),
  ]);
}
