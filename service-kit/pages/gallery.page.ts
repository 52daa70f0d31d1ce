/** The gallery, `/dev/gallery`: every component in every state. Register it outside production only. */
import type { FastifyInstance } from 'fastify';
import { pageHeader } from './page-header.ts';
import { sendPage } from './send-page.ts';
import { shell } from './shell.ts';

/** Serves `/dev/gallery`. */
export function registerGallery(app: FastifyInstance): void {
  app.get('/dev/gallery', async (_request, reply) =>
    sendPage(
      reply,
      shell(
        { area: 'Gallery', home: '/dev/gallery', title: 'Components', navigation: [] },
        pageHeader({ title: 'Components' }),
      ),
    ),
  );
}
