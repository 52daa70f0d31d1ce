/**
 * Refuses documentation that names a file or folder of this project which does not exist.
 *
 * Checked are the targets of relative links, and every text in code style that begins with a folder of the project, such
 * as `monitor/feeds/` or `docs/settings.md: the first table`. `*` and `<name>` stand for any text in one segment of a path.
 */
import { dirname, join } from 'node:path';
import type { Tree } from '../tree.ts';

export interface DeadPath {
  /** File and line. */
  at: string;
  path: string;
}

/** A record of the past names files as they were. */
const recordPattern = /^(CHANGELOG\.md|docs\/decisions\/)/;

/** Checks the Markdown files of the tree. */
export function findDeadPaths(tree: Tree): DeadPath[] {
  const paths = withFolders(tree.files);
  const documents = tree.files.filter((file) => file.endsWith('.md') && !recordPattern.test(file));
  return documents.flatMap((file) =>
    tree
      .read(file)
      .split('\n')
      .flatMap((line, index) =>
        [...linksIn(line).map((target) => join(dirname(file), target)), ...pathsIn(line, paths)]
          .filter((path) => !exists(path, paths))
          .map((path) => ({ at: `${file}:${index + 1}`, path })),
      ),
  );
}

/** The files and each folder around one of them. */
function withFolders(files: readonly string[]): Set<string> {
  const paths = new Set<string>();
  for (const file of files) for (let path = file; path !== '.'; path = dirname(path)) paths.add(path);
  return paths;
}

function linksIn(line: string): string[] {
  return [...line.matchAll(/\]\(([^)#\s]+)(#[^)]*)?\)/g)]
    .map((match) => match[1]!)
    .filter((target) => !/^[a-z]+:/.test(target) && !target.startsWith('/'));
}

function pathsIn(line: string, paths: ReadonlySet<string>): string[] {
  return [...line.matchAll(/`([^`]+)`/g)]
    .map((match) => /^[\w.*<>@/-]+/.exec(match[1]!)?.[0] ?? '')
    .filter((path) => path.includes('/') && paths.has(path.split('/')[0]!));
}

function exists(path: string, paths: ReadonlySet<string>): boolean {
  const named = path.replace(/[.,;:]*\/?$/, '');
  if (!/[*<]/.test(path)) return paths.has(named);
  const pattern = named
    .replaceAll(/<[^>]*>/g, '*')
    .replaceAll('.', '\\.')
    .replaceAll('**/', '(.+/)?')
    .replaceAll('*', '[^/]*');
  const whole = new RegExp(`^${pattern}$`);
  return [...paths].some((one) => whole.test(one));
}
