/**
 * Stylesheet and scripts, at addresses that hold a hash of their contents, so browsers may keep them for ever.
 *
 * One hash covers all of them (`/assets/<hash>/chart.js`), so scripts import each other by relative path and no
 * bundler or rewriting is needed. A page of an older release that asks with an older hash gets the present file, not
 * cacheable: during a rolling release that is better than an unstyled page.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { gzipSync } from 'node:zlib';
import type { App } from '#service-kit/http/index.ts';
import { acceptsGzip } from '#service-kit/http/negotiate.ts';
import { accentTokens, type Provider, presentProvider } from './provider.ts';

interface Asset {
  type: string;
  body: Buffer;
  /** Made when it is first asked for. */
  gzipped: Buffer | null;
}

const own = (name: string) => readFileSync(new URL(`./browser/${name}`, import.meta.url));
const fromPackage = (path: string) => readFileSync(new URL(import.meta.resolve(path)));

/** In the order of the cascade: tokens first, what phones change last. */
const styles = [
  'tokens',
  'ground',
  'shell',
  'page',
  'controls',
  'tables',
  'feedback',
  'palette',
  'text',
  'navigation',
  'charts',
  'chart-marks',
  'diagrams',
  'phone',
];

function stylesheet({ accent }: Provider): Buffer {
  const parts = [fromPackage('uplot/dist/uPlot.min.css'), ...styles.map((name) => own(`styles/${name}.css`))];
  const tokens = Object.entries(accent === null ? {} : accentTokens(accent));
  const colours = tokens.map(([name, { light, dark }]) => `--${name}: light-dark(${light}, ${dark});`);
  if (colours.length > 0) parts.push(Buffer.from(`:root { ${colours.join(' ')} }`));
  return Buffer.from(parts.map((part) => withoutComments(part.toString())).join('\n'));
}

const ownStyles = (name: string) => Buffer.from(withoutComments(own(`styles/${name}.css`).toString()));

/** Comments and spaces are a third of the stylesheet, and no browser needs them. */
function withoutComments(css: string): string {
  return css
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\s*\n\s*/g, '\n')
    .replace(/\s*([{};,])\s*/g, '$1')
    .replace(/: /g, ':')
    .replace(/;}/g, '}')
    .replace(/ > /g, '>')
    .trim();
}

/** Our scripts without indentation and without comments on lines of their own; they hold no text over several lines. */
function script(name: string): Buffer {
  const lines = own(name).toString().split('\n');
  const kept = lines
    .map((line) => line.trim())
    .filter((line) => line !== '' && !/^(\/\/|\/\*\*.*\*\/$)/.test(line));
  return Buffer.from(`${kept.join('\n')}\n`);
}

/** The files of charts as one, which a page asks for once and which compresses better; no two of them declare the same name. */
function chartScript(): Buffer {
  const files = ['chart-values', 'chart-marks', 'chart-legend', 'chart'].map((name) => {
    const text = script(`${name}.js`).toString();
    return text.replaceAll(/^import [^;]*;\n/gm, '').replaceAll(/^export /gm, '');
  });
  const imports = "import { make, makeButton } from './elements.js';\nimport uPlot from './uplot.js';\n";
  return Buffer.from(imports + files.join(''));
}

const sources = {
  'pages.css': (provider) => ['text/css', stylesheet(provider)],
  // For the API reference alone, so that no other page pays for it.
  'reference.css': () => ['text/css', ownStyles('reference')],
  // For explorers, for pages without a shell, and for the console of a server.
  'explore.css': () => ['text/css', ownStyles('explore')],
  'alone.css': () => ['text/css', ownStyles('alone')],
  'console.css': () => ['text/css', ownStyles('console')],
  'theme.js': () => ['text/javascript', script('theme.js')],
  'pages.js': () => ['text/javascript', script('pages.js')],
  // Loaded when it is first opened.
  'palette.js': () => ['text/javascript', script('palette.js')],
  'refresh.js': () => ['text/javascript', script('refresh.js')],
  'chart.js': () => ['text/javascript', chartScript()],
  'elements.js': () => ['text/javascript', script('elements.js')],
  // For the pages that use passkeys alone.
  'passkeys.js': () => ['text/javascript', script('passkeys.js')],
  // For the page that leads to the other console alone.
  'sign-on.js': () => ['text/javascript', script('sign-on.js')],
  // For the monitor's explorer alone.
  'explore.js': () => ['text/javascript', script('explore.js')],
  // For the console of a server alone.
  'console.js': () => ['text/javascript', script('console.js')],
  'reference.js': () => ['text/javascript', script('reference.js')],
  'htmx.js': () => ['text/javascript', fromPackage('htmx.org/dist/htmx.esm.min.js')],
  // The minified build is a plain script; as a module it needs its one export.
  'uplot.js': () => [
    'text/javascript',
    Buffer.concat([fromPackage('uplot/dist/uPlot.iife.min.js'), Buffer.from('\nexport default uPlot;\n')]),
  ],
  /** Of the provider where it has one: in the browser's tab, and in place of the name. */
  logo: ({ logo }) => (logo ? [logo.type, logo.body] : ['image/svg+xml', own('favicon.svg')]),
} satisfies Record<string, (provider: Provider) => [string, Buffer]>;

export type AssetName = keyof typeof sources;

const novncFolder = new URL('../', import.meta.resolve('@novnc/novnc'));

/** The modules of noVNC, which import one another by relative path: below `novnc/`, read when they are first asked for. */
const novncModules = new Set(
  ['core/', 'vendor/'].flatMap((folder) =>
    readdirSync(new URL(folder, novncFolder), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.js'))
      .map((path) => `${folder}${path}`),
  ),
);
const novncVersion = readFileSync(new URL('package.json', novncFolder));

let loaded: { provider: Provider; hash: string; assets: Map<string, Asset> } | undefined;

function load(): { hash: string; assets: Map<string, Asset> } {
  const provider = presentProvider();
  if (loaded?.provider === provider) return loaded;
  // Each composition reads its provider anew, and most are the same.
  if (loaded && isDeepStrictEqual(loaded.provider, provider)) {
    loaded.provider = provider;
    return loaded;
  }
  const hash = createHash('sha256').update(novncVersion);
  const assets = new Map<string, Asset>();
  for (const [name, read] of Object.entries(sources)) {
    const [type, body] = read(provider) as [string, Buffer];
    hash.update(name).update(body);
    assets.set(name, { type: type === 'image/png' ? type : `${type}; charset=utf-8`, body, gzipped: null });
  }
  loaded = { provider, hash: hash.digest('base64url').slice(0, 12), assets };
  return loaded;
}

/** The address of an asset, with the present hash. */
export function assetUrl(name: AssetName): string {
  return `/assets/${load().hash}/${name}`;
}

/** Serves `/assets/…`. Register it once per server. */
export function registerAssets(app: App): void {
  const { hash, assets } = load();
  const find = (name: string): Asset | undefined => {
    const path = name.replace(/^novnc\//, '');
    if (path !== name && novncModules.has(path) && !assets.has(name)) {
      const body = readFileSync(new URL(path, novncFolder));
      assets.set(name, { type: 'text/javascript; charset=utf-8', body, gzipped: null });
    }
    return assets.get(name);
  };
  app.get<{ Params: { hash: string; '*': string } }>(
    '/assets/:hash/*',
    { schema: { hide: true } as object },
    async (request, reply) => {
      const asset = find(request.params['*']);
      if (!asset) return reply.code(404).type('text/plain').send('There is no such file.\n');
      const isCurrent = request.params.hash === hash;
      reply.type(asset.type);
      reply.header('cache-control', isCurrent ? 'public, max-age=31536000, immutable' : 'no-store');
      reply.header('x-content-type-options', 'nosniff');
      // An SVG that is opened by itself is a page: it gets no scripts.
      if (asset.type.startsWith('image/'))
        reply.header('content-security-policy', "default-src 'none'; style-src 'unsafe-inline'; sandbox");
      reply.header('vary', 'accept-encoding');
      if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(asset.body);
      asset.gzipped ??= gzipSync(asset.body, { level: 9 });
      return reply.header('content-encoding', 'gzip').send(asset.gzipped);
    },
  );
}
