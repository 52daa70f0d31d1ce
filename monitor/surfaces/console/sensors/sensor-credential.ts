/** A sensor's credential on its page: its expiry, and the button that rotates it. */
import { Type } from 'typebox';
import type { SensorState } from '#monitor/sensors/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { drawer, form, formatTime, html } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';

export const SensorParams = Type.Object({
  ...SiteParams.properties,
  sensorId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});

export function registerSensorRotation(app: App, deps: ConsoleDeps): void {
  app.post(
    '/sites/:siteId/sensors/:sensorId/rotate',
    { schema: { params: SensorParams } },
    async (request, reply) => {
      const { siteId, sensorId } = request.params;
      const { actor } = viewerOf(request);
      if (!(await deps.sensors.requestRotation(actor, siteId, sensorId)))
        throw new HttpError(404, { code: 'not_found', message: 'This sensor does not exist.' });
      return reply.redirect(`/sites/${siteId}/sensors/${sensorId}`, 303);
    },
  );
}

/** Expiry of the sensor's credential, and the state of a requested rotation. */
export function credentialText(sensor: SensorState): string {
  const { credentialExpiresAtMs: endsAtMs, credentialIssuedAtMs, rotationRequestedAtMs } = sensor;
  const end =
    endsAtMs === null
      ? 'No expiry: the sensor has not rotated it yet. Current sensor versions do so within a minute.'
      : `Issued ${formatTime(credentialIssuedAtMs)}, expires ${formatTime(endsAtMs)}. The sensor rotates it after two thirds of that time.`;
  return rotationRequestedAtMs === null
    ? end
    : `${end} Rotation requested ${formatTime(rotationRequestedAtMs)}; the sensor has not finished it.`;
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
