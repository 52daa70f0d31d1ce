/** Asking before something is done that a stray click must not do. */
import { actionButton } from './form.ts';
import { type Content, type Html, html } from './html.ts';
import { drawer } from './navigation.ts';

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
