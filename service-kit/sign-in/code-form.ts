import { type Content, field, form, type Html } from '#service-kit/pages/index.ts';

/** Asks for a code of the authenticator app, or a recovery code. */
export function codeForm(options: {
  action: string;
  csrfToken: string | null;
  submit: string;
  /** The name of the field; default `code`. */
  name?: string;
  fields?: Content;
  /** Default: what signs in, the app's digits or a recovery code. */
  hint?: string;
  error?: string | undefined;
}): Html {
  const { action, csrfToken, submit } = options;
  return form({ action, csrfToken, submit }, [
    options.fields ?? '',
    field({
      name: options.name ?? 'code',
      label: 'Code',
      hint: options.hint ?? 'Six digits of your authenticator app, or one of your recovery codes.',
      required: true,
      maxLength: 100,
      autocomplete: 'one-time-code',
      isCode: true,
      autofocus: true,
      error: options.error,
    }),
  ]);
}
