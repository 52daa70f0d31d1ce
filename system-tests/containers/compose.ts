/** `packaging/containers/compose.yaml` and the Dockerfile, read as Compose reads them. */
import { cpSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

const folder = new URL('../../packaging/containers/', import.meta.url);

export interface ComposeService {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  secrets?: string[];
  healthcheck?: { test: string[] };
  profiles?: string[];
  volumes?: string[];
  networks?: string[];
  ports?: string[];
  read_only?: boolean;
  cap_drop?: string[];
}

export interface ComposeFile {
  services: Record<string, ComposeService>;
  secrets: Record<string, { file: string }>;
  volumes: Record<string, unknown>;
  networks: Record<string, { ipam?: { config: { subnet: string; gateway: string }[] } } | null>;
}

/** The file with its merge keys resolved and variables in the place of `${NAME:?…}`; throws where one is missing. */
export function readCompose(variables: Readonly<Record<string, string>>): ComposeFile {
  const text = readFileSync(new URL('compose.yaml', folder), 'utf8');
  const whole = text.replace(/\$\{(\w+):\?([^}]*)\}/g, (_, name: string, why: string) => {
    const value = variables[name];
    if (!value) throw new Error(`${name}: ${why}`);
    return value;
  });
  return parse(whole, { merge: true }) as ComposeFile;
}

/** The image's `ENTRYPOINT` and `ENV`. */
export function readImage(): { entrypoint: string[]; environment: Record<string, string> } {
  const text = readFileSync(new URL('Dockerfile', folder), 'utf8');
  const entrypoint = JSON.parse(/^ENTRYPOINT (\[.*\])$/m.exec(text)![1]!) as string[];
  const pairs = /^ENV (.*)$/m
    .exec(text)![1]!
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]);
  return { entrypoint, environment: Object.fromEntries(pairs) };
}

/**
 * Lays out the image's working directory as the `COPY` lines of its last stage say, with this
 * checkout's packages.
 */
export function layOutImage(to: string): void {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const stage = readFileSync(new URL('Dockerfile', folder), 'utf8')
    .split(/^FROM /m)
    .at(-1)!;
  symlinkSync(join(root, 'node_modules'), join(to, 'node_modules'));
  for (const [, list] of stage.matchAll(/^COPY (?!--)(.*)$/gm)) {
    const names = list!.split(' ');
    const target = join(to, names.pop()!);
    for (const name of names) {
      const isFile = names.length > 1;
      cpSync(join(root, name), isFile ? join(target, name) : target, { recursive: true });
    }
  }
}
