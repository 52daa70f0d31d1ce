/** The sign-in page of both servers, at `/sign-in`. */
import { field, form, hiddenField } from './form.ts';
import { type Html, html } from './html.ts';
import { bareDocument, brand } from './shell.ts';

export interface SignInPageOptions {
  /** "Customer portal", "Operations", "Monitor". */
  area: string;
  /** Default `/sign-in`. */
  action?: string;
  /** What was typed before, after a failure. */
  email?: string | undefined;
  /** Says that it failed, never whether the address exists. */
  error?: string | undefined;
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
  return bareDocument(
    { title: `Sign in · ${options.area}` },
    html`<main class="alone">${brand(options.area, '/')}<div class="card"><h1>Sign in</h1>${form(
      {
        action: options.action ?? '/sign-in',
        csrfToken: null,
        submit: 'Sign in',
        error: options.error,
      },
      fields,
    )}</div></main>`,
  );
}

/** True for a path on this server, so that `next` can't lead to a stranger. */
export function isLocalPath(path: unknown): path is string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  return typeof path === 'string' && /^\/(?!\/)/.test(path) && !/[\u0000-\u0020\\]/.test(path);
}
