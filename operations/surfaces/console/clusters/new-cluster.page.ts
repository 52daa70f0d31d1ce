import type { Location } from '#operations/catalog/index.ts';
import { driverNames } from '#operations/hypervisors/index.ts';
import {
  code,
  emptyState,
  field,
  form,
  type Html,
  html,
  link,
  pageHeader,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface NewClusterOptions {
  staff: Staff;
  locations: readonly Location[];
  form?: { name: string; location: string; driver: string };
  /** What was wrong, by field. */
  faults?: ReadonlyMap<string, string>;
}

/** `/console/clusters/new`: a group of hypervisors in a location. */
export function newClusterPage(options: NewClusterOptions): Html {
  return consoleFrame(
    {
      staff: options.staff,
      title: 'New cluster',
      current: 'clusters',
      breadcrumb: [{ label: 'Clusters', href: '/console/clusters/' }, { label: 'New cluster' }],
    },
    [
      pageHeader({
        title: 'New cluster',
        state: {
          tone: 'info',
          text: 'Then add a node and an address range, so that servers can be placed in it.',
        },
      }),
      options.locations.length > 0
        ? clusterForm(options)
        : html`<div class="card">${emptyState({
            title: 'No locations yet',
            text: 'A cluster stands in a location, which customers choose.',
            action: { label: 'Create a location first', href: '/console/catalog/locations/new' },
          })}</div>`,
    ],
  );
}

function clusterForm({ staff, locations, form: given, faults }: NewClusterOptions): Html {
  return form(
    {
      action: '/console/clusters/',
      csrfToken: staff.csrfToken,
      submit: 'Create cluster',
      cancel: link('/console/clusters/', 'Cancel', { kind: 'button' }),
    },
    [
      field({
        name: 'name',
        label: 'Name',
        required: true,
        isCode: true,
        maxLength: 63,
        placeholder: 'nyc1-b',
        value: given?.name,
        error: faults?.get('name'),
      }),
      field({
        kind: 'select',
        name: 'location',
        label: 'Location',
        value: given?.location,
        options: locations.map((location) => ({ value: String(location.id), label: location.name })),
      }),
      field({
        kind: 'select',
        name: 'driver',
        label: 'Driver',
        hint: ['Runs the servers: ', code('libvirt'), ' on real machines.'],
        value: given?.driver ?? 'libvirt',
        options: driverNames.map((name) => ({ value: name, label: name })),
        error: faults?.get('driver'),
      }),
    ],
  );
}
