/**
 * Compiles the programs of `sensor/kernel` for the kernel, each to an object beside its source. The hash of the source is in the
 * object. Needs Debian 12's clang, llvm and libbpf-dev.
 *
 * usage: sh tools/with-node tools/compile-kernel.ts
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The sources, by their paths in the project. */
export const kernelSources: readonly string[] = [
  'sensor/kernel/counter.bpf.c',
  'sensor/kernel/filter.bpf.c',
  'sensor/testing/flood.bpf.c',
];

const root = fileURLToPath(new URL('..', import.meta.url));

/** A source with the headers beside it in the places where it includes them. */
export function sourceText(source: string): string {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  return read(source).replaceAll(/^#include "(.+)"$/gm, (_, header: string) =>
    read(join(dirname(source), header)),
  );
}

/** The hash that the object of this source holds. */
export function sourceHash(source: string): string {
  return createHash('sha256').update(sourceText(source)).digest('hex');
}

/** Where the object of this source is. */
export function objectOf(source: string): string {
  return join(root, source.replace(/\.c$/, '.o'));
}

/**
 * Compiles a source, or a changed `text` of it, to this file. The same compiler makes the same bytes, wherever the project is.
 * Throws what the compiler says.
 */
export function compileKernel(source: string, object: string, text?: string): void {
  const options = ['-O2', '-g', '-target', 'bpf', '-mcpu=v3', '-Wall', '-Wextra', '-Werror'];
  const paths = ['-fdebug-compilation-dir=.', '-I/usr/include/x86_64-linux-gnu'];
  const hash = `-DSOURCE_HASH="${sourceHash(source)}"`;
  const input = text ?? sourceText(source);
  execFileSync('clang', [...options, ...paths, hash, '-x', 'c', '-c', '-', '-o', object], { input });
  // What remains of the debugging information is the types of the maps, which libbpf needs.
  execFileSync('llvm-strip', ['-g', object]);
}

if (import.meta.main) for (const source of kernelSources) compileKernel(source, objectOf(source));
