import type { Tree } from '../tree.ts';

/** A tree of these texts by path. */
export function treeOf(texts: Readonly<Record<string, string>>): Tree {
  return { files: Object.keys(texts).sort(), read: (file) => texts[file]! };
}
