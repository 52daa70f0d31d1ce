/** Pages for what went wrong: what happened, why, what to do now. */
import { backButton } from './feedback.ts';
import { type Content, type Html, html } from './html.ts';
import { link } from './link.ts';
import { alonePage, type ShellOptions, shell } from './shell.ts';
import { prose } from './text.ts';

export interface ErrorPageOptions {
  status: number;
  area: string;
  home: string;
  /** In place of the usual words. */
  title?: string;
  text?: Content;
  /** What is wrong with the fields of the form that was sent. */
  faults?: readonly FieldFault[] | undefined;
  /** The request's number, for support. */
  requestId?: string | undefined;
  /** Keeps the navigation of a signed-in person. */
  shell?: Omit<ShellOptions, 'title'> | undefined;
}

const words: Record<number, { title: string; text: string }> = {
  400: { title: 'Invalid request', text: 'Go back, check your input and send it again.' },
  403: {
    title: 'Permission denied',
    text: 'Your role does not allow this action. Ask the owner of your organization, or sign in with another account.',
  },
  404: { title: 'Page not found', text: 'It was deleted, or the URL is wrong. Go back to the overview.' },
  409: {
    title: 'It changed in the meantime',
    text: 'Another person changed it. Reload the page and check it before you repeat your change.',
  },
  421: { title: 'Unknown host name', text: 'This server does not answer under this host name.' },
  429: { title: 'Too many attempts', text: 'Wait a few minutes, then try again.' },
  500: {
    title: 'Something went wrong on our side',
    text: 'The error was logged. Nothing was changed. Try again in a moment.',
  },
  503: { title: 'Not available right now', text: 'The database does not answer. Try again in a moment.' },
};

/** The page of an error status. */
export function errorPage(options: ErrorPageOptions): Html {
  const known = words[options.status] ?? words[options.status < 500 ? 400 : 500]!;
  const title = options.title ?? known.title;
  const faults = options.faults ?? [];
  // A form led to it, which the browser has kept.
  const hasForm = faults.length > 0 || [400, 409, 422].includes(options.status);
  const said = typeof options.text === 'string' ? prose(options.text) : options.text;
  const text =
    faults.length > 0
      ? html`Nothing was changed. Go back, correct this and send it again:`
      : (said ?? known.text);
  const content = html`<div class="error-page"><p class="error-status">${options.status}</p><h1>${title}</h1><p>${text}</p>${
    faults.length > 0 && html`<ul>${faults.map((fault) => html`<li>${faultText(fault)}</li>`)}</ul>`
  }${options.requestId && html`<p class="hint">Request <code>${options.requestId}</code></p>`}<p class="error-ways">${
    hasForm && backButton('primary')
  }${link(options.home, 'Go to the overview', { kind: hasForm ? 'button' : 'primary' })}</p></div>`;
  if (options.shell) return shell({ ...options.shell, title }, content);
  return alonePage({ area: options.area, home: options.home, title }, content);
}

/** What is wrong with a field of a form, in plainWords for the person who filled it. */

interface FieldFault {
  /** Where the field is: `name`, `addresses.0`. */
  path: string;
  /** As the check said it (JSON Schema), or in plainWords already. */
  message: string;
}

const plainWords: readonly (readonly [RegExp, string])[] = [
  [/^must not have more than (\d+) characters$/i, 'has more than $1 characters'],
  [/^must not have fewer than 1 characters$/i, 'is empty'],
  [/^must not have fewer than (\d+) characters$/i, 'has fewer than $1 characters'],
  [/^must not have more than (\d+) items$/i, 'has more than $1 entries'],
  [/^must match pattern .*$/is, 'has another form than it must have, or characters that are not allowed'],
  [/^must match format "(.*)"$/i, 'is not a valid $1'],
  [/^must be >= (.*)$/i, 'is less than $1'],
  [/^must be <= (.*)$/i, 'is more than $1'],
  [/^must be integer$/i, 'is not a whole number'],
  [/^must be number$/i, 'is not a number'],
  [/^must be (equal to one of the allowed values|equal to constant)$/i, 'is none of the choices'],
  [/^is required$/i, 'is missing'],
];

/** `legalName`, `legal_name` and `legal-name` become `Legal name`. */
function labelOf(path: string): string {
  const text = path
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .replace(/[_-]/g, ' ')
    .toLowerCase();
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** One line for a fault: `Name has more than 100 characters.` */
export function faultText({ path, message }: FieldFault): string {
  const missing = /^must have required propert(?:y|ies) (.*)$/i.exec(message);
  if (missing) return `${labelOf(missing[1]!.replaceAll(/['"]/g, ''))} is missing.`;
  const found = plainWords.find(([pattern]) => pattern.test(message));
  const said = found === undefined ? message : message.replace(found[0], found[1]);
  return `${path === '' ? 'The form' : labelOf(path)} ${said}${said.endsWith('.') ? '' : '.'}`;
}
