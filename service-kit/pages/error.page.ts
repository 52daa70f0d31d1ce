/** Pages for what went wrong: what happened, why, what to do now. */
import { type FieldFault, faultText } from './fault-text.ts';
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
  400: {
    title: 'Invalid request',
    text: 'Go back, check your input and send it again.',
  },
  403: {
    title: 'Permission denied',
    text: 'Your role does not allow this action. Ask the owner of your organization, or sign in with another account.',
  },
  404: {
    title: 'Page not found',
    text: 'It was deleted, or the URL is wrong. Go back to the overview.',
  },
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
