/** Mail that is caught in a folder instead of sent, for a demo: one JSON file each, readable by its owner alone. */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeError } from '#common/errors/index.ts';

export interface CaughtMail {
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
