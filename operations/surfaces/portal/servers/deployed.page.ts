import type { Server } from '#operations/views/index.ts';
import {
  banner,
  code,
  codeBlock,
  type Definition,
  definitionList,
  formatMoney,
  type Html,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';
import { networksPath } from '../networks/networks.page.ts';

const breadcrumb = [{ label: 'Servers', href: '/client/' }, { label: 'Deploy' }];

/** The answer to a deployment: the only page that ever shows the password. */
export function deployedPage(options: { visitor: Visitor; server: Server; rootPassword: string }): Html {
  const { visitor, server } = options;
  const publicAddress = server.addresses.find((each) => each.isPrimary)?.address;
  const address = publicAddress ?? server.privateNetworks[0]?.ip;
  const label = publicAddress === undefined ? 'As soon as it runs, from its network' : 'As soon as it runs';
  return portalFrame(
    { visitor, title: `${server.name} is ordered`, current: 'servers', breadcrumb, isNarrow: true },
    [
      pageHeader({
        title: `${server.name} is ordered`,
        state: { tone: 'info', text: 'It starts within a minute or two; its page shows when it runs.' },
        actions: link(`/client/servers/${server.id}`, 'Go to the server', { kind: 'primary' }),
      }),
      banner({
        tone: 'warn',
        title: 'Copy the root password now',
        text: 'It is shown on this page only.',
      }),
      codeBlock({ code: options.rootPassword, label: 'Root password' }),
      address !== undefined && codeBlock({ code: `ssh root@${address}`, label }),
      section({ title: 'Details' }, definitionList(factsOf(server))),
    ],
  );
}

function factsOf(server: Server): Definition[] {
  const [card] = server.privateNetworks;
  return [
    { term: 'Plan', value: server.planName },
    { term: 'Image', value: server.imageName },
    { term: 'Location', value: server.locationName },
    ...(server.hasPublicIp ? [] : [{ term: 'Public address', value: 'None' }]),
    ...(card
      ? [
          {
            term: 'Private network',
            value: [link(`${networksPath}${card.networkId}`, card.name), ', ', code(card.ip, true)],
          },
        ]
      : []),
    {
      term: 'Price',
      value: `${formatMoney(server.hourlyQuanta)} an hour, at most ${formatMoney(server.monthlyCapQuanta)} a month`,
    },
  ];
}
