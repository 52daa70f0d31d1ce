/** `/console/appearance/`: the provider's name, logo, colour and links, as customers see them. They are settings of both programs. */

import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  banner,
  definitionList,
  html,
  link,
  pageHeader,
  presentProvider,
  schemePreview,
  section,
  senderOf,
  sendPage,
} from '#service-kit/pages/index.ts';
import { providerSettings } from '#service-kit/pages/provider.ts';
import { consoleFrame } from '../frame.ts';

const names = { ...providerSettings, smtpFrom: { name: 'SVC_SMTP_FROM' } };

export function registerAppearance(app: App, { settings }: Features): void {
  app.get('/appearance/', async (request, reply) => {
    const { name, logo, accent } = presentProvider();
    const set = (of: keyof typeof names, label: string, value: string | null) => ({
      term: label,
      value: html`${value ?? 'not set'} <span class="hint"><code>${names[of].name}</code></span>`,
    });
    const sample = [
      html`<h3>Servers</h3><p>web-1 is running. ${link('/console/appearance/', 'Show its traffic')}</p>`,
      html`<p>${link('/console/appearance/', 'Deploy a server', { kind: 'primary' })} ${link('/console/appearance/', 'Cancel', { kind: 'button' })}</p>`,
      banner({ tone: 'info', title: 'A port scan is running' }),
    ];
    const content = [
      pageHeader({ title: 'Appearance' }),
      section(
        {
          title: 'Settings',
          description: 'They are read at the start of operations and of the monitor, so set them for both.',
        },
        definitionList([
          set('providerName', 'Name', name),
          set('providerLogo', 'Logo', logo && `${settings.providerLogo}, ${logo.body.length} bytes`),
          set('providerAccent', 'Color', accent),
          set('providerSupport', 'Support', settings.providerSupport),
          set('providerTerms', 'Terms', settings.providerTerms),
          set('providerPrivacy', 'Privacy', settings.providerPrivacy),
          set('smtpFrom', 'Sender of mails', senderOf(settings)),
        ]),
      ),
      section(
        { title: 'Preview', description: 'A page of the portal, light and dark.' },
        html`<div class="scheme-previews">${(['light', 'dark'] as const).map((scheme) => schemePreview(scheme, 'Customer portal', sample))}</div>`,
      ),
    ];
    const frame = { staff: request.staff!, title: 'Appearance', current: 'appearance' } as const;
    return sendPage(reply, consoleFrame(frame, content));
  });
}
