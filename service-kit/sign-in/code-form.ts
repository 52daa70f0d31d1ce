import { type Content, field, form, type Html } from '#service-kit/pages/index.ts';

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
