/** The files that checks read: each is read once, however many checks look at it. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

export interface Tree {
  /** Paths relative to the project's folder, sorted. */
  files: readonly string[];
  read(file: string): string;
}

/** Files of the working tree that git knows or would add; without git, every file below. */
export function listFiles(root: string): string[] {
  const git = spawnSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' });
  const listed =
    git.status === 0
      ? git.stdout
      : spawnSync('find', ['.', '-path', './node_modules', '-prune', '-o', '-type', 'f', '-print'], {
          cwd: root,
          encoding: 'utf8',
        }).stdout;
  return listed
    .split('\n')
    .map((file) => file.replace(/^\.\//, ''))
    .filter((file) => file !== '' && existsSync(`${root}/${file}`))
    .sort();
}

export function openTree(root: string): Tree {
  const texts = new Map<string, string>();
  return {
    files: listFiles(root),
    read(file) {
      const text = texts.get(file) ?? readFileSync(`${root}/${file}`, 'utf8');
      texts.set(file, text);
      return text;
    },
  };
}
