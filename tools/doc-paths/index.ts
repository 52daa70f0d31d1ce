/**
 * Refuses documentation that names a file or folder of this project which does not exist.
 *
 * Checked are the targets of relative links, and every text in code style that begins with a folder of the project, such
 * as `monitor/feeds/` or `docs/settings.md: the first table`. `*` and `<name>` stand for any text in one segment of a path.
 */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

export interface DeadPath {
  /** File and line. */
  at: string;
  path: string;
}

/** A record of the past names files as they were. */
const recordPattern = /^(CHANGELOG\.md|docs\/(about-proofs|mended-faults|proofs)\.md|docs\/decisions\/)/;

/** Checks the Markdown files among `files` (paths relative to `root`). */
export function findDeadPaths(root: string, files: readonly string[]): DeadPath[] {
  const folders = new Set(
    readdirSync(root).filter(
      (name) => !/^(\.|node_modules)/.test(name) && statSync(join(root, name)).isDirectory(),
    ),
  );
  const documents = files.filter((file) => file.endsWith('.md') && !recordPattern.test(file));
  return documents.flatMap((file) => {
    const lines = readFileSync(`${root}/${file}`, 'utf8').split('\n');
    return lines.flatMap((line, index) => {
      const named = [
        ...linksIn(line).map((target) => join(dirname(file), target)),
        ...pathsIn(line, folders),
      ];
      return named
        .filter((path) => !exists(root, path))
        .map((path) => ({ at: `${file}:${index + 1}`, path }));
    });
  });
}

function linksIn(line: string): string[] {
  return [...line.matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)]
    .map((match) => match[1]!)
    .filter((target) => !/^[a-z]+:/.test(target) && !target.startsWith('/'));
}

function pathsIn(line: string, folders: ReadonlySet<string>): string[] {
  return [...line.matchAll(/`([^`]+)`/g)]
    .map((match) => /^[\w.*<>@/-]+/.exec(match[1]!)?.[0] ?? '')
    .filter((path) => path.includes('/') && folders.has(path.split('/')[0]!));
}

function exists(root: string, path: string): boolean {
  const isPattern = /[*<]/.test(path);
  if (!isPattern) return existsSync(join(root, path.replace(/[.,;:]+$/, '')));
  return globSync(path.replace(/<[^>]*>/g, '*'), { cwd: root }).length > 0;
}
