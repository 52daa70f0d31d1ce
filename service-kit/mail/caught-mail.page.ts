/**
 * `/dev/mail/`: the mails that a demo caught instead of sending, with links that can be followed.
 *
 * Register it for a demo only, where a hook admits signed-in people alone. It answers operators at this machine: links in
 * mails set passwords, so a reader can sign in as any person.
 */
import type { FastifyRequest } from 'fastify';
import { requireLocal } from '#service-kit/demo/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  emptyState,
  formatTime,
  type Html,
  html,
  link,
  pageHeader,
  section,
  sendPage,
  shell,
} from '#service-kit/pages/index.ts';
import { type CaughtMail, listCaughtMail } from './catch-mail.ts';

export interface CaughtMailOptions {
  folder: string;
  area: string;
  /** Asked of a signed-in person. */
  isOperator: (request: FastifyRequest) => boolean;
}

export function registerCaughtMail(app: App, options: CaughtMailOptions): void {
  app.get('/dev/mail/', { schema: { hide: true } as object }, async (request, reply) => {
    requireLocal(request, 'Caught mail is shown on this machine only, under localhost or 127.0.0.1.');
    if (!options.isOperator(request))
      throw new HttpError(403, {
        code: 'forbidden',
        message: 'Caught mail has links that set passwords. Sign in as an operator to read it.',
      });
    const mails = await listCaughtMail(options.folder);
    const page = shell(
      {
        area: options.area,
        home: '/',
        title: 'Caught mail',
        navigation: [],
        breadcrumb: [{ label: 'Caught mail' }],
      },
      [
        pageHeader({
          title: 'Caught mail',
          state: { tone: 'info', text: 'This demo sends no mail. What it would send is listed here.' },
        }),
        mails.length === 0
          ? emptyState({
              title: 'No mail yet',
              text: 'Invite a person or reset a password, then look again.',
            })
          : mails.map(mailSection),
      ],
    );
    return sendPage(reply, page);
  });
}

function mailSection(mail: CaughtMail): Html {
  return section({ title: mail.subject, description: `To ${mail.to}, ${formatTime(Date.parse(mail.at))}` }, [
    withoutLinks(mail.text)
      .split('\n\n')
      .map((paragraph) => html`<p>${paragraph}</p>`),
    linksOf(mail.text).map(
      (url) => html`<p>${link(new URL(url).pathname, 'Open the link', { kind: 'button' })}</p>`,
    ),
  ]);
}

const urlPattern = /https?:\/\/\S+/g;
const linksOf = (text: string) => text.match(urlPattern) ?? [];
/** The button stands for the link; a secret of 43 characters would be wider than a phone. */
const withoutLinks = (text: string) => text.replaceAll(urlPattern, (url) => new URL(url).origin);
