/**
 * Counts circles of files: sets of files that import one another, directly or through each other.
 *
 * Type-only imports count too, except inside one feature: a file may name the types of the door that calls it.
 */
import type { Module, Place } from './module.ts';

const featureOf = ({ path, unit, top }: Place) => `${top}/${unit ?? path.split('/')[1]}`;

/** Every circle of two or more files, each as a sorted list of paths (Tarjan's strongly connected components). */
export function findFileCircles(modules: readonly Module[]): string[][] {
  const paths = new Set(modules.map((module) => module.place.path));
  const edges = new Map(
    modules.map(({ place, imports }) => [
      place.path,
      [
        ...new Set(
          imports.flatMap(({ target, isTypeOnly }) => {
            if (target === null || !paths.has(target.path)) return [];
            return isTypeOnly && featureOf(target) === featureOf(place) ? [] : [target.path];
          }),
        ),
      ],
    ]),
  );
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const stack: string[] = [];
  const onStack = new Set<string>();
  const circles: string[][] = [];
  const visit = (path: string): void => {
    order.set(path, order.size);
    lowest.set(path, order.get(path)!);
    stack.push(path);
    onStack.add(path);
    for (const next of edges.get(path)!) {
      if (!order.has(next)) visit(next);
      if (onStack.has(next)) lowest.set(path, Math.min(lowest.get(path)!, lowest.get(next)!));
    }
    if (lowest.get(path) !== order.get(path)) return;
    const circle = stack.splice(stack.lastIndexOf(path));
    for (const one of circle) onStack.delete(one);
    if (circle.length > 1) circles.push(circle.sort());
  };
  for (const path of edges.keys()) if (!order.has(path)) visit(path);
  return circles.sort((a, b) => a[0]!.localeCompare(b[0]!));
}
