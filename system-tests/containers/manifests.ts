/** The manifests of `packaging/kubernetes/`. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  [field: string]: unknown;
}

interface Probe {
  httpGet: { path: string; port: string };
}

export interface Container {
  image: string;
  args: string[];
  envFrom: ({ configMapRef: { name: string } } | { secretRef: { name: string } })[];
  ports: { name: string; containerPort: number }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
  resources: { requests: Record<string, string>; limits: Record<string, string> };
  securityContext: unknown;
  volumeMounts: { name: string; mountPath: string }[];
}

export interface Deployment extends Manifest {
  spec: {
    replicas: number;
    template: {
      metadata: { labels: Record<string, string> };
      spec: {
        securityContext: unknown;
        containers: [Container];
        volumes: { name: string; secret?: { secretName: string; defaultMode: number } }[];
      };
    };
  };
}

/** Every document, templates too. */
export function readManifests(): Manifest[] {
  const folder = fileURLToPath(new URL('../../packaging/kubernetes/', import.meta.url));
  return globSync('**/*.yaml', { cwd: folder })
    .sort()
    .flatMap((file) => parseAllDocuments(readFileSync(folder + file, 'utf8')))
    .map((document) => {
      if (document.errors[0]) throw document.errors[0];
      return document.toJS() as Manifest;
    });
}

export const deploymentsOf = (manifests: readonly Manifest[]): Deployment[] =>
  manifests.filter(({ kind }) => kind === 'Deployment') as Deployment[];
