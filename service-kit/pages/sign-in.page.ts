/** The sign-in page of both servers, at `/sign-in`. */
import { banner } from './feedback.ts';
import { field, form, hiddenField } from './form.ts';
import { type Content, type Html, html } from './html.ts';
import { link } from './link.ts';
import { alonePage } from './shell.ts';

export interface SignInPageOptions {
  /** "Customer portal", "Operations", "Monitor". */
  area: string;
  /** Default `/sign-in`. */
  action?: string;
  /** What was typed before, after a failure. */
  email?: string | undefined;
  /** Says that it failed, never whether the address exists. */
  error?: string | undefined;
  /** What was done just before, such as a password that was set. */
  success?: string | undefined;
  /** The page for a forgotten password. */
  resetHref?: string;
  /** Another way to sign in, below the form. */
  alternative?: Content;
  /** Where to go afterwards, a path on this server; checked again when it comes back. */
  next?: string | undefined;
}

/** Asks for email and password. */
export function signInPage(options: SignInPageOptions): Html {
  const fields = [
    options.next !== undefined && hiddenField('next', options.next),
    field({
      kind: 'email',
      name: 'email',
      label: 'Email',
      required: true,
      autocomplete: 'username',
      value: options.email,
      autofocus: !options.email,
    }),
    field({
      kind: 'password',
      name: 'password',
      label: 'Password',
      required: true,
      autocomplete: 'current-password',
      autofocus: Boolean(options.email),
    }),
  ];
  return alonePage(
    { area: options.area, title: 'Sign in', isSignedOut: true },
    html`<h1>Sign in</h1>${options.success && banner({ tone: 'good', title: options.success })}${form(
      { action: options.action ?? '/sign-in', csrfToken: null, submit: 'Sign in', error: options.error },
      fields,
    )}${options.alternative}${options.resetHref && html`<p>${link(options.resetHref, 'Forgot your password?')}</p>`}`,
  );
}

/** True for a path on this server, so that `next` can't lead to a stranger. */
export function isLocalPath(path: unknown): path is string {
  // Visible ASCII, as a browser writes a path: a header holds nothing else.
  return typeof path === 'string' && /^\/(?!\/)[\x21-\x7e]*$/.test(path) && !path.includes('\\');
}
