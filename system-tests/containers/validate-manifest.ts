/** A manifest against the schema of its kind, as strictly as `kubectl apply --validate=strict`. */
import * as apps from 'kubernetes-models/apps/v1';
import * as networking from 'kubernetes-models/networking.k8s.io/v1';
import * as policy from 'kubernetes-models/policy/v1';
import * as core from 'kubernetes-models/v1';
import type { Manifest } from './manifests.ts';

const groups: Record<string, object> = {
  v1: core,
  'apps/v1': apps,
  'policy/v1': policy,
  'networking.k8s.io/v1': networking,
};

interface Model {
  prototype: { validate(this: unknown): void };
}

/** Faults as `/path what is wrong`. */
export function findFaults(manifest: Manifest): string[] {
  const model = (groups[manifest.apiVersion] as Record<string, Model> | undefined)?.[manifest.kind];
  if (!model) return [`/kind ${manifest.apiVersion} ${manifest.kind} is unknown`];
  const read = new Set<string>();
  try {
    // Not on an instance: its constructor reads every field.
    model.prototype.validate.call(watch(manifest, '', read));
  } catch (error) {
    return [(error as Error).message];
  }
  // The schemas let unknown fields pass. A field that the check never looked at is one that it does not know.
  return pathsOf(manifest, '')
    .filter((path) => !read.has(path))
    .map((path) => `${path} is unknown`);
}

/** The value, whose every field that is read is noted by its path. */
function watch(value: unknown, path: string, read: Set<string>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    get(target, key) {
      const found = Reflect.get(target, key) as unknown;
      if (typeof key !== 'string' || !Object.hasOwn(target, key)) return found;
      read.add(`${path}/${key}`);
      return watch(found, `${path}/${key}`, read);
    },
  });
}

const pathsOf = (value: unknown, path: string): string[] =>
  typeof value !== 'object' || value === null
    ? []
    : Object.entries(value).flatMap(([key, inner]) => [
        `${path}/${key}`,
        ...pathsOf(inner, `${path}/${key}`),
      ]);
