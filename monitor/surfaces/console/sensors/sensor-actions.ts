/** What may be done to a sensor, as drawers of its page. */
import type { SensorState } from '#monitor/sensors/index.ts';
import { confirm, drawer, form, html } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import type { Viewer } from '../guard.ts';
import { nodeFields } from '../parts/node-fields.ts';

export function nodeChoice(
  siteId: number,
  sensor: SensorState,
  nodes: Awaited<ReturnType<ConsoleDeps['sensors']['listNodes']>>,
  viewer: Viewer,
) {
  const value = nodes.find((one) => one.node === sensor.node);
  return drawer(
    { id: 'node', open: 'Change node', title: `Node of ${sensor.hostName}` },
    form(
      {
        action: `/sites/${siteId}/sensors/${sensor.id}/node`,
        csrfToken: viewer.csrfToken,
        submit: 'Change node',
      },
      nodeFields(nodes, value ? { node: `${value.clusterId}/${value.node}` } : { node_name: sensor.node }),
    ),
  );
}

export function credentialRotation(siteId: number, sensor: SensorState, viewer: Viewer) {
  return drawer(
    { id: 'rotate', open: 'Rotate credential', title: `Rotate the credential of ${sensor.hostName}` },
    [
      html`<p>The sensor gets a new credential within a minute, without data loss. The old one is refused after the first use of the new one. If the credential was stolen, remove the sensor instead, which takes effect at once.</p>`,
      form(
        {
          action: `/sites/${siteId}/sensors/${sensor.id}/rotate`,
          csrfToken: viewer.csrfToken,
          submit: 'Rotate credential',
        },
        null,
      ),
    ],
  );
}

export function removal(siteId: number, sensor: SensorState, viewer: Viewer) {
  return drawer(
    { id: 'revoke', open: 'Remove', title: `Remove ${sensor.hostName}`, openKind: 'danger' },
    confirm({
      action: `/sites/${siteId}/sensors/${sensor.id}/revoke`,
      csrfToken: viewer.csrfToken,
      name: sensor.hostName,
      consequence:
        'Its credential is refused from then on: this host can not send data until it is enrolled again with a new token. Received data stays.',
      submit: 'Remove sensor',
    }),
  );
}
