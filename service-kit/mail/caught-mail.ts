/** Mail that is caught in a folder instead of sent, for a demo: one JSON file each, readable by its owner alone. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyRequest } from 'fastify';
import { describeError } from '#common/errors/index.ts';
import { requireLocal } from '#service-kit/demo/index.ts';
import { type App, HttpError, hidden } from '#service-kit/http/index.ts';
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

interface CaughtMail {
  at: string;
  to: string;
  subject: string;
  text: string;
}

const keptMax = 100;

/** Writes a mail into the folder and drops the oldest beyond a hundred. Null, or why it could not be written. */
export async function catchMail(folder: string, mail: CaughtMail): Promise<string | null> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = join(folder, `${mail.at.replaceAll(':', '-')}-${randomUUID().slice(0, 8)}.json`);
    await writeFile(`${file}.new`, JSON.stringify(mail, null, 2), { mode: 0o600 });
    await rename(`${file}.new`, file);
    const old = (await namesIn(folder)).slice(keptMax);
    for (const name of old) await rm(join(folder, name), { force: true });
    return null;
  } catch (error) {
    return `the folder for caught mail can't be written: ${describeError(error)}`;
  }
}

/** The caught mails, newest first. */
export async function listCaughtMail(folder: string): Promise<CaughtMail[]> {
  const names = await namesIn(folder);
  return Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as CaughtMail),
  );
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const names = await readdir(folder);
    return names
      .filter((name) => name.endsWith('.json'))
      .sort()
      .reverse();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

// `/dev/mail/`: the mails that a demo caught instead of sending, with links that can be followed.
//
// Register it for a demo only, where a hook admits signed-in people alone. It answers operators at this machine: links in
// mails set passwords, so a reader can sign in as any person.

export interface CaughtMailOptions {
  folder: string;
  area: string;
  /** Asked of a signed-in person. */
  isOperator: (request: FastifyRequest) => boolean;
}

export function registerCaughtMail(app: App, options: CaughtMailOptions): void {
  app.get('/dev/mail/', { schema: hidden }, async (request, reply) => {
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
