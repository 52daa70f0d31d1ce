/** The page of the clients: what there is, how each is installed, and the digests to compare. */
import { buildDownloads, type Download } from '#clients/downloads.ts';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
import {
  codeBlock,
  formatBytes,
  type Html,
  html,
  link,
  prose,
  section,
  table,
} from '#service-kit/pages/index.ts';

/** Where the files are, in every place where the page is. */
const filesBase = '/docs/api/clients/';

let made: readonly Download[] | null = null;

/** Made when it is first asked for, and then kept: the same for every reader. */
export function clientDownloads(): readonly Download[] {
  made ??= buildDownloads(readOpenApi(buildOpenApi()));
  return made;
}

/** The digests as `sha256sum --check` reads them. */
export const clientDigests = () =>
  clientDownloads()
    .map(({ file, sha256 }) => `${sha256}  ${file}\n`)
    .join('');

export function renderClients(origin: string): Html {
  const downloads = clientDownloads();
  const get = `curl -fO ${origin}${filesBase}`;
  const install: Record<Download['kind'], string> = {
    typescript: `${get}FILE\nnpm install ./FILE`,
    svcctl: `${get}FILE\nsudo install -m 755 FILE /usr/local/bin/svcctl\nsvcctl configure --url ${origin}\nsvcctl servers list\nsource <(svcctl completion bash)`,
    python: `${get}FILE\npython3 -m venv venv\nvenv/bin/pip install ./FILE`,
    ansible: `${get}FILE\nansible-galaxy collection install ./FILE\nansible-doc virtual_servers.cloud.server`,
  };
  return html`<p>${prose('All clients are made of the OpenAPI document of this installation. They repeat a call only where that can’t do anything twice, wait for actions, and walk through the pages of lists.')}</p>${table<Download>(
    {
      caption: 'Clients',
      card: { line: ['summary'] },
      refreshSeconds: 0,
      rows: [...downloads],
      columns: [
        {
          key: 'file',
          header: 'File',
          kind: 'code',
          cell: (row) => link(`${filesBase}${row.file}`, row.file),
        },
        { key: 'summary', header: 'What it is', kind: 'prose', cell: (row) => prose(row.summary) },
        { key: 'version', header: 'Version', cell: (row) => row.version },
        { key: 'size', header: 'Size', kind: 'figure', cell: (row) => formatBytes(row.bytes.length) },
      ],
      empty: { title: 'No clients', text: 'There are none.' },
    },
  )}${downloads.map(({ kind, title, file, sha256 }) =>
    section({ title, id: kind }, [
      codeBlock({ label: 'Install', code: install[kind].replaceAll('FILE', file) }),
      codeBlock({ label: 'SHA-256', code: sha256 }),
    ]),
  )}${section(
    { title: 'Check a download', id: 'check' },
    codeBlock({
      label: 'Compare the digests',
      code: `${get}SHA256SUMS\nsha256sum --check --ignore-missing SHA256SUMS`,
    }),
  )}`;
}
