/** `/client/servers/{id}/settings`: what a server is called, and its end. */
import { type Server, statusOf } from '#operations/servers/index.ts';
import {
  type Content,
  confirm,
  field,
  form,
  type Html,
  pageHeader,
  section,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from './server-frame.ts';

export interface ServerSettingsOptions {
  visitor: Visitor;
  server: Server;
  toast?: { tone: Tone; text: Content };
  confirmError?: string;
  /** What a refused form about its words held, and what was wrong. */
  words?: { name: string; hostname: string; labels: string; faults: ReadonlyMap<string, string> };
}

export function serverSettingsPage(options: ServerSettingsOptions): Html {
  const { visitor, server, toast } = options;
  const header = pageHeader({
    title: server.name,
    state: { tone: 'neutral', text: `Host name ${server.hostname}.` },
  });
  return serverFrame({ visitor, server, tab: 'settings', toast }, header, [
    section(
      { title: 'Name and labels', description: 'Changes names here only, not inside the server.' },
      wordsForm(options),
    ),
    destroySection(options),
  ]);
}

function wordsForm({ server, visitor, words }: ServerSettingsOptions): Html {
  const faultOf = (name: string) => words?.faults.get(name);
  const labels = Object.entries(server.labels).map(([key, value]) => `${key}=${value}`);
  return form(
    {
      action: `/client/servers/${server.id}/words`,
      csrfToken: visitor.csrfToken,
      submit: 'Save',
      submitKind: 'button',
    },
    [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        maxLength: 64,
        value: words?.name ?? server.name,
        error: faultOf('name'),
      }),
      field({
        name: 'hostname',
        label: 'Host name',
        required: true,
        maxLength: 253,
        isCode: true,
        value: words?.hostname ?? server.hostname,
        error: faultOf('hostname'),
      }),
      field({
        kind: 'textarea',
        name: 'labels',
        label: 'Labels',
        hint: 'One per line, for example env=prod. The API can filter by labels.',
        isCode: true,
        rows: 3,
        value: words?.labels ?? labels.join('\n'),
        error: faultOf('labels'),
      }),
    ],
  );
}

function destroySection({ server, visitor, confirmError }: ServerSettingsOptions): Content {
  const status = statusOf(server);
  if (status === 'deleting' || status === 'failed') return '';
  return section(
    { title: 'Destroy this server', id: 'destroy' },
    confirm({
      action: `/client/servers/${server.id}/destroy`,
      csrfToken: visitor.csrfToken,
      name: server.name,
      consequence:
        'This permanently deletes the disk and releases its IP addresses. Charging ends with the current hour.',
      submit: 'Destroy server',
      ...(confirmError === undefined ? {} : { error: confirmError }),
    }),
  );
}
