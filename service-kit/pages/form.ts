/**
 * Forms and their fields. Every POST form carries the CSRF token; every control has a label, a hint and a place
 * for its error, which says what to do now.
 */
import { maskToken } from '#service-kit/sessions/token-mask.ts';
import { attributes, type Content, classes, type Html, html } from './html.ts';
import { safeHref } from './link.ts';
import { drawer } from './navigation.ts';
import { prose } from './text.ts';

/** The hidden field that carries the CSRF token. */
export const CSRF_FIELD = 'csrf_token';

export interface FormOptions {
  action: string;
  /** Default `post`, which needs `csrfToken`. */
  method?: 'post' | 'get';
  /** The session's token; `null` only where no session can exist yet, as at sign-in. */
  csrfToken?: string | null;
  /** The button's words, a verb: "Create key". Left out when the content has its own buttons. */
  submit?: string;
  /** How the button looks; default `primary`. */
  submitKind?: 'primary' | 'button' | 'danger';
  /** A way out beside the button. */
  cancel?: Content;
  /** `inline` puts fields and button in one line, for filters. Default `stacked`. */
  layout?: 'stacked' | 'inline';
  /** An error of the whole form. */
  error?: string | undefined;
}

/** A form. A POST form without a token throws: it could never be accepted. */
export function form(options: FormOptions, content: Content): Html {
  const method = options.method ?? 'post';
  if (method === 'post' && !options.csrfToken && options.csrfToken !== null)
    throw new TypeError(`form to ${options.action} lacks its CSRF token`);
  const kind = options.submitKind ?? 'primary';
  const submit =
    options.submit &&
    html`<button type="submit" class="${classes('button', kind !== 'button' && kind)}">${options.submit}</button>`;
  return html`<form class="form ${options.layout ?? 'stacked'}" method="${method}" action="${safeHref(options.action)}">${
    method === 'post' && options.csrfToken && hiddenField(CSRF_FIELD, options.csrfToken)
  }${options.error && html`<p class="form-error" role="alert">${prose(options.error)}</p>`}${content}${
    (submit || options.cancel) && html`<div class="form-buttons">${submit}${options.cancel}</div>`
  }</form>`;
}

interface Fault {
  message: string;
  /** Null: the form as a whole. */
  field: string | null;
}

/** A refused form: what it held by the names of its fields, and what was wrong. */
export interface Refused {
  typed?: Readonly<Record<string, string | undefined>> | undefined;
  /** What is wrong with a field stands beside it, all else above the form. */
  fault?: Fault | readonly Fault[] | null | undefined;
}

/** A form of these fields. A refused one keeps what was typed. */
export function inputForm(
  options: FormOptions,
  fields: readonly (FieldOptions | Content)[],
  { typed, fault }: Refused = {},
): Html {
  const faults = [fault ?? []].flat();
  const others = faults.filter((each) => !fields.some((one) => isField(one) && one.name === each.field));
  return form(
    { ...options, error: others[0]?.message ?? options.error },
    fields.map((one) => {
      if (!isField(one)) return one;
      const error = faults.findLast((each) => each.field === one.name)?.message ?? one.error;
      const given = typed?.[one.name];
      if (one.kind === 'checkbox')
        return field({ ...one, error, checked: typed ? given !== undefined : (one.checked ?? false) });
      return field(given === undefined ? { ...one, error } : { ...one, error, value: given });
    }),
  );
}

const isField = (one: FieldOptions | Content): one is FieldOptions =>
  typeof one === 'object' && one !== null && 'label' in one;

/** Another button of a form, which sends it elsewhere, such as to a rehearsal. */
export function otherSubmit(options: { action: string; label: string }): Html {
  return html`<button type="submit" class="button" formaction="${safeHref(options.action)}">${options.label}</button>`;
}

/** A value that travels with the form unseen. The token of forms is masked, because pages are compressed. */
export function hiddenField(name: string, value: string | number): Html {
  const shown = name === CSRF_FIELD ? maskToken(String(value)) : value;
  return html`<input type="hidden" name="${name}" value="${shown}">`;
}

/** A form of one button, for an action that needs no input. */
export function actionButton(options: {
  action: string;
  csrfToken: string;
  label: string;
  kind?: 'primary' | 'button' | 'danger';
  fields?: Readonly<Record<string, string | number>>;
}): Html {
  const fields = Object.entries(options.fields ?? {}).map(([name, value]) => hiddenField(name, value));
  return form(
    {
      action: options.action,
      csrfToken: options.csrfToken,
      submit: options.label,
      submitKind: options.kind ?? 'button',
      layout: 'inline',
    },
    fields,
  );
}

interface FieldBase {
  name: string;
  /** Unique in the page; default `field-` and the name. Needed when two forms of a page have a field of one name. */
  id?: string;
  label: string;
  /** Read to who can't see that the place says the same, as in a table's cell. */
  isLabelHidden?: boolean;
  hint?: Content;
  error?: string | undefined;
  required?: boolean;
  disabled?: boolean;
}

export interface InputField extends FieldBase {
  kind?: 'text' | 'email' | 'password' | 'number' | 'search' | 'url' | 'datetime-local';
  value?: string | number | undefined;
  placeholder?: string;
  autocomplete?: string;
  autofocus?: boolean;
  maxLength?: number;
  min?: number | string;
  max?: number | string;
  step?: number | string;
  pattern?: string;
  /** Monospace, for addresses and tokens. */
  isCode?: boolean;
}

export interface TextAreaField extends FieldBase {
  kind: 'textarea';
  value?: string | undefined;
  rows?: number;
  placeholder?: string;
  isCode?: boolean;
}

export interface SelectField extends FieldBase {
  kind: 'select';
  value?: string | undefined;
  options: readonly { value: string; label: string; disabled?: boolean }[];
}

export interface CheckboxField extends FieldBase {
  kind: 'checkbox';
  checked?: boolean;
  /** Sent when ticked; default `on`. */
  value?: string;
}

export type FieldOptions = InputField | TextAreaField | SelectField | CheckboxField;

/** A labelled control with its hint and its error. */
export function field(options: FieldOptions): Html {
  const id = options.id ?? `field-${options.name}`;
  const describedBy = classes(
    options.hint !== undefined && `${id}-hint`,
    options.error !== undefined && `${id}-error`,
  );
  const common = {
    id,
    name: options.name,
    required: options.required ?? false,
    disabled: options.disabled ?? false,
    'aria-describedby': describedBy || undefined,
    'aria-invalid': options.error !== undefined ? 'true' : undefined,
  };
  const label = html`<label for="${id}"${attributes({ class: options.isLabelHidden ? 'visually-hidden' : undefined })}>${options.label}${!options.required && options.kind !== 'checkbox' && options.kind !== 'select' && html` <span class="optional">optional</span>`}</label>`;
  const control = controlOf(options, common);
  const hint = options.hint !== undefined && html`<p class="hint" id="${id}-hint">${options.hint}</p>`;
  const error =
    options.error !== undefined &&
    html`<p class="field-error" id="${id}-error">■ ${prose(options.error)}</p>`;
  return options.kind === 'checkbox'
    ? html`<div class="field field-checkbox">${control}<div>${label}${hint}${error}</div></div>`
    : html`<div class="${classes('field', options.error !== undefined && 'has-error')}">${label}${hint}${control}${error}</div>`;
}

/** Checkboxes that are one question; they stand side by side where there is room. */
export function fieldGroup(
  options: { legend: string; hint?: Content; error?: string | undefined },
  items: Content,
): Html {
  return html`<fieldset class="${classes('field-group', options.error !== undefined && 'has-error')}"><legend>${options.legend}</legend>${
    options.hint !== undefined && html`<p class="hint">${options.hint}</p>`
  }<div class="field-group-items">${items}</div>${
    options.error !== undefined && html`<p class="field-error">■ ${prose(options.error)}</p>`
  }</fieldset>`;
}

type Common = Readonly<Record<string, string | number | boolean | undefined>>;

function controlOf(options: FieldOptions, common: Common): Html {
  switch (options.kind) {
    case 'textarea':
      // A browser drops the first line break of a text area, so one of ours comes before the value.
      return html`<textarea${attributes({ ...common, rows: options.rows ?? 4, placeholder: options.placeholder, class: options.isCode ? 'code' : undefined })}>
${options.value}</textarea>`;
    case 'select':
      return html`<select${attributes(common)}>${options.options.map(
        (option) =>
          html`<option${attributes({ value: option.value, selected: option.value === options.value, disabled: option.disabled ?? false })}>${option.label}</option>`,
      )}</select>`;
    case 'checkbox':
      return html`<input${attributes({ ...common, type: 'checkbox', value: options.value ?? 'on', checked: options.checked ?? false })}>`;
    default:
      return html`<input${attributes({
        ...common,
        type: options.kind ?? 'text',
        // A password is never sent back into a page.
        value: options.kind === 'password' ? undefined : options.value,
        placeholder: options.placeholder,
        autocomplete: options.autocomplete,
        autofocus: options.autofocus ?? false,
        maxlength: options.maxLength,
        min: options.min,
        max: options.max,
        step: options.step,
        pattern: options.pattern,
        class: options.isCode ? 'code' : undefined,
        spellcheck: options.isCode ? 'false' : undefined,
      })}>`;
  }
}

/** The field in which `confirm` asks for the name. */
export const CONFIRM_FIELD = 'confirm_name';

export interface ConfirmOptions {
  action: string;
  csrfToken: string;
  /** What must be typed, usually the name of the thing. */
  name: string;
  /** What is deleted permanently. */
  consequence: Content;
  /** The button's words: "Destroy server". */
  submit: string;
  error?: string | undefined;
  fields?: Readonly<Record<string, string | number>>;
  /** What is chosen before the name is typed. */
  content?: Content;
}

/**
 * Guards what can't be undone: the name must be typed. The server asks `isConfirmed` as well; the script only
 * keeps the button shut until the name fits.
 */
export function confirm(options: ConfirmOptions): Html {
  const hidden = Object.entries(options.fields ?? {}).map(([name, value]) => hiddenField(name, value));
  return html`<div class="confirm" data-confirm="${options.name}"><p>${options.consequence}</p>${form(
    { action: options.action, csrfToken: options.csrfToken, submit: options.submit, submitKind: 'danger' },
    [
      hidden,
      options.content,
      field({
        id: `confirm${options.action.replace(/[^a-z0-9]+/gi, '-')}`,
        name: CONFIRM_FIELD,
        label: `Type ${options.name} to confirm`,
        required: true,
        isCode: true,
        autocomplete: 'off',
        error: options.error,
      }),
    ],
  )}</div>`;
}

/** True when the name was typed right (spaces around it don't matter). */
export function isConfirmed(body: unknown, name: string): boolean {
  if (typeof body !== 'object' || body === null) return false;
  const typed = (body as Record<string, unknown>)[CONFIRM_FIELD];
  return typeof typed === 'string' && typed.trim() === name.trim();
}

// Asking before something is done that a stray click must not do.

export interface AskOptions {
  /** Unique in the page. */
  id: string;
  /** The button that asks. */
  label: string;
  /** The question: "Detach web-1?". */
  title: string;
  /** The button that acts; default the label. */
  submit?: string;
  /** How the asking button looks; default `danger`. */
  openKind?: 'button' | 'danger';
  action: string;
  csrfToken: string;
  fields?: Readonly<Record<string, string | number>>;
}

/**
 * A button that asks first: it opens a drawer with what will happen, and the button that does it stands there. For what
 * can be set right again; `confirm` asks for the name of what can't.
 */
export function askButton(options: AskOptions, consequence: Content): Html {
  const { id, label, title, action, csrfToken, fields = {} } = options;
  return drawer({ id, open: label, title, openKind: options.openKind ?? 'danger' }, [
    html`<p>${consequence}</p>`,
    actionButton({ action, csrfToken, label: options.submit ?? label, kind: 'danger', fields }),
  ]);
}
