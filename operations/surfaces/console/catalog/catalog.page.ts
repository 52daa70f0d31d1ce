import type { Image, Location, Offer, Plan } from '#operations/catalog/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import {
  badge,
  type Column,
  code,
  formatCount,
  formatMoney,
  type Html,
  link,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface CatalogPageOptions {
  staff: Staff;
  locations: readonly Location[];
  clusters: readonly Cluster[];
  plans: readonly Offer<Plan>[];
  images: readonly Offer<Image>[];
  toast?: { tone: Tone; text: string };
}

/** `/console/catalog/`: what customers can order, and where. */
export function catalogPage(options: CatalogPageOptions): Html {
  const { staff, toast } = options;
  return consoleFrame(
    { staff, title: 'Catalog', current: 'catalog', breadcrumb: [{ label: 'Catalog' }], toast },
    [
      pageHeader({ title: 'Catalog', state: stateOf(options) }),
      planSection(options),
      imageSection(options),
      locationSection(options),
    ],
  );
}

function stateOf({ plans, images, locations, clusters }: CatalogPageOptions): { tone: Tone; text: string } {
  const open = locations.filter((each) => clusters.some((cluster) => cluster.locationId === each.id));
  const offered = plans.filter((plan) => plan.isOffered);
  const pictures = images.filter((image) => image.isOffered);
  const missing = [
    offered.length === 0 && 'a plan',
    pictures.length === 0 && 'an image',
    open.length === 0 && 'a location with a cluster',
  ].filter((each) => each !== false);
  if (missing.length > 0)
    return { tone: 'warn', text: `Nothing can be ordered: ${missing.join(' and ')} is missing.` };
  const count = (n: number, one: string) => `${formatCount(n)} ${n === 1 ? one : `${one}s`}`;
  return {
    tone: 'good',
    text: `Customers choose among ${count(offered.length, 'plan')}, ${count(pictures.length, 'image')} and ${count(open.length, 'location')}.`,
  };
}

const addLink = (staff: Staff, kind: string, label: string) =>
  staff.canChange && link(`/console/catalog/${kind}/new`, label, { kind: 'button' });

/** The name leads to the form, for those who may send it. */
const nameCell = (staff: Staff, kind: string) => (row: { id: number; name: string }) =>
  staff.canChange ? link(`/console/catalog/${kind}/${row.id}`, row.name) : row.name;

const slugColumn: Column<{ slug: string }> = {
  key: 'slug',
  header: 'Name in the API',
  kind: 'code',
  cell: (row) => code(row.slug),
};
const offerColumn: Column<{ isOffered: boolean }> = {
  key: 'offer',
  header: 'State',
  cell: (row) => badge(row.isOffered ? 'good' : 'neutral', row.isOffered ? 'offered' : 'withdrawn'),
};

function planSection({ staff, plans }: CatalogPageOptions): Html {
  return section(
    {
      title: 'Plans',
      description: 'A new price applies to new orders. Existing servers keep their price.',
      actions: addLink(staff, 'plans', 'New plan'),
    },
    table<Offer<Plan>>({
      caption: 'Plans',
      card: { line: ['vcpus', 'memory', 'disk'] },
      columns: [
        { key: 'name', header: 'Plan', cell: nameCell(staff, 'plans') },
        slugColumn,
        offerColumn,
        { key: 'vcpus', header: 'vCPUs', kind: 'figure', cell: (plan) => formatCount(plan.vcpus) },
        {
          key: 'memory',
          header: 'Memory',
          unit: 'GiB',
          kind: 'figure',
          cell: (plan) => formatCount(plan.memoryMb / 1024),
        },
        {
          key: 'disk',
          header: 'Disk',
          unit: 'GB',
          kind: 'figure',
          cell: (plan) => formatCount(plan.diskGb),
        },
        { key: 'hour', header: 'Per hour', kind: 'figure', cell: (plan) => formatMoney(plan.hourlyQuanta) },
        {
          key: 'month',
          header: 'Monthly cap',
          kind: 'figure',
          cell: (plan) => formatMoney(plan.monthlyCapQuanta),
        },
      ],
      rows: plans,
      empty: { title: 'No plans yet', text: 'A plan is a server size and its price.' },
    }),
  );
}

function imageSection({ staff, images }: CatalogPageOptions): Html {
  return section(
    {
      title: 'Images',
      description:
        'Every node needs each offered image in its storage pool, named by its name in the API: debian-13.qcow2.',
      actions: addLink(staff, 'images', 'New image'),
    },
    table<Offer<Image>>({
      caption: 'Images',
      card: { line: ['family'] },
      columns: [
        { key: 'name', header: 'Image', cell: nameCell(staff, 'images') },
        slugColumn,
        offerColumn,
        { key: 'family', header: 'Family', cell: (image) => image.family },
      ],
      rows: images,
      empty: { title: 'No images yet', text: 'An image is the operating system of a new server.' },
    }),
  );
}

function locationSection({ staff, locations, clusters }: CatalogPageOptions): Html {
  const clustersOf = (location: Location) =>
    clusters.filter((cluster) => cluster.locationId === location.id).map((cluster) => cluster.name);
  return section(
    {
      title: 'Locations',
      description: 'Customers can order in a location once it has a cluster.',
      actions: addLink(staff, 'locations', 'New location'),
    },
    table<Location>({
      caption: 'Locations',
      card: { line: ['country', 'clusters'] },
      columns: [
        { key: 'name', header: 'Location', cell: nameCell(staff, 'locations') },
        slugColumn,
        { key: 'country', header: 'Country', cell: (location) => location.country },
        {
          key: 'clusters',
          header: 'Clusters',
          cell: (location) => {
            const names = clustersOf(location);
            return names.length > 0
              ? link('/console/clusters/', names.join(', '))
              : badge('warn', 'none yet');
          },
        },
      ],
      rows: locations,
      empty: { title: 'No locations yet', text: 'A location is a data center that customers choose.' },
    }),
  );
}
