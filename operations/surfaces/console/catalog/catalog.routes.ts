import { Type } from 'typebox';
import type { ImageKind } from '#contracts/capabilities.ts';
import type { StaffActor } from '#operations/accounts/index.ts';
import { formatQuanta, parseMoney } from '#operations/billing/index.ts';
import type { Catalog, Image, Location, Offer, Plan } from '#operations/catalog/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  type Column,
  cellColumn,
  code,
  codeColumn,
  definitionList,
  type FieldOptions,
  formatCount,
  formatMoney,
  type Html,
  inputForm,
  link,
  pageHeader,
  section,
  sendPage,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { countColumn, figureColumn, noSuchPage, readAll } from '#service-kit/web/index.ts';
import { type FieldFault, faultOf } from '../field-fault.ts';
import { consoleFrame } from '../frame.ts';
import { Id, type Staff } from '../guard.ts';

const text = Type.Optional(Type.String({ maxLength: 400 }));
const OfferBody = Type.Object({
  slug: text,
  name: text,
  country: text,
  family: text,
  kind: text,
  vcpus: text,
  memory_gib: text,
  disk_gb: text,
  port_mbit: text,
  hourly: text,
  monthly: text,
  offered: text,
});
const kinds = ['locations', 'plans', 'images'] as const;
const savedHref = '/console/catalog/?done=saved';
const words: Readonly<Record<OfferKind, string>> = { locations: 'location', plans: 'plan', images: 'image' };

export function registerCatalog(app: App, deps: Features): void {
  app.get(
    '/catalog/',
    { schema: { querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const staff = request.staff!;
      const toast = toastOf({ saved: 'Saved.' }, request.query.done, 'good');
      return sendPage(reply, catalogPage({ staff, ...(await readCatalog(deps, staff)), toast }));
    },
  );
  for (const kind of kinds) registerKind(app, deps, kind);
}

function registerKind(app: App, deps: Features, kind: OfferKind): void {
  app.get(`/catalog/${kind}/new`, async (request, reply) => {
    const staff = request.staff!;
    if (!staff.canChange) throw noSuchPage();
    return sendPage(reply, offerPage({ staff, kind, id: null, title: `New ${words[kind]}`, form: {} }));
  });

  app.post(`/catalog/${kind}`, { schema: { body: OfferBody } }, async (request, reply) => {
    const staff = request.staff!;
    const form = request.body;
    const fault = await offerFault(() => add(deps.catalog, staff.actor, kind, form));
    if (fault === null) return reply.redirect(savedHref, 303);
    return sendPage(
      reply,
      offerPage({ staff, kind, id: null, title: `New ${words[kind]}`, form, fault }),
      422,
    );
  });

  app.get(`/catalog/${kind}/:id`, { schema: { params: Id } }, async (request, reply) => {
    const staff = request.staff!;
    if (!staff.canChange) throw noSuchPage();
    const { id } = request.params;
    const found = await findOffer(deps, staff, kind, id);
    return sendPage(reply, offerPage({ staff, kind, id, ...found }));
  });

  app.post(`/catalog/${kind}/:id`, { schema: { params: Id, body: OfferBody } }, async (request, reply) => {
    const staff = request.staff!;
    const { id } = request.params;
    const { title, form: before } = await findOffer(deps, staff, kind, id);
    const form = { ...before, ...request.body, offered: request.body.offered };
    const fault = await offerFault(() => change(deps.catalog, staff.actor, kind, id, form));
    if (fault === null) return reply.redirect(savedHref, 303);
    return sendPage(reply, offerPage({ staff, kind, id, title, form, fault }), 422);
  });
}

function add(catalog: Catalog, actor: StaffActor, kind: OfferKind, form: OfferForm): Promise<unknown> {
  const { slug = '', name = '', country = '', family = '', kind: use = 'system' } = form;
  if (kind === 'locations') return catalog.addLocation(actor, { slug, name, country });
  if (kind === 'images') return catalog.addImage(actor, { slug, name, family, kind: use as ImageKind });
  const sizes = {
    vcpus: Number(form.vcpus),
    memoryMb: Number(form.memory_gib) * 1024,
    diskGb: Number(form.disk_gb),
  };
  return catalog.addPlan(actor, { slug, name, ...sizes, ...termsOf(form) });
}

function change(catalog: Catalog, actor: StaffActor, kind: OfferKind, id: number, form: OfferForm) {
  const { name = '', country = '' } = form;
  const isOffered = form.offered === 'on';
  if (kind === 'locations') return catalog.changeLocation(actor, id, { name, country });
  if (kind === 'images') return catalog.changeImage(actor, id, { name, isOffered });
  return catalog.changePlan(actor, id, { name, isOffered, ...termsOf(form) });
}

function termsOf(form: OfferForm) {
  const port = form.port_mbit?.trim() ?? '';
  return {
    portMbit: port === '' ? null : Number(port),
    hourlyQuanta: parseMoney(form.hourly ?? '') ?? 0,
    monthlyCapQuanta: parseMoney(form.monthly ?? '') ?? 0,
  };
}

async function findOffer(
  { catalog }: Features,
  staff: Staff,
  kind: OfferKind,
  id: number,
): Promise<{ title: string; form: OfferForm }> {
  const form = await formOf(catalog, staff.actor, kind, id);
  if (form === null) throw noSuchPage();
  return { title: form.name ?? '', form };
}

async function formOf(
  catalog: Catalog,
  actor: StaffActor,
  kind: OfferKind,
  id: number,
): Promise<OfferForm | null> {
  if (kind === 'locations') {
    const found = (await catalog.listAllLocations()).find((each) => each.id === id);
    return found ? { slug: found.slug, name: found.name, country: found.country } : null;
  }
  if (kind === 'images') {
    const found = (await catalog.listAllImages(actor)).find((each) => each.id === id);
    const { slug, name, family, kind: use, isOffered } = found ?? {};
    return found ? { slug, name, family, kind: use, offered: isOffered ? 'on' : undefined } : null;
  }
  const plan = (await catalog.listAllPlans(actor)).find((each) => each.id === id);
  if (!plan) return null;
  return {
    slug: plan.slug,
    name: plan.name,
    vcpus: String(plan.vcpus),
    memory_gib: String(plan.memoryMb / 1024),
    disk_gb: String(plan.diskGb),
    port_mbit: String(plan.portMbit ?? ''),
    hourly: formatQuanta(plan.hourlyQuanta),
    monthly: formatQuanta(plan.monthlyCapQuanta),
    offered: plan.isOffered ? 'on' : undefined,
  };
}

const offerFault = (change: () => Promise<unknown>) => faultOf('catalog', fieldNames, change);
/** The form's names of the fields that operations name in their refusals. */
const fieldNames = {
  memoryMb: 'memory_gib',
  diskGb: 'disk_gb',
  portMbit: 'port_mbit',
  hourlyQuanta: 'hourly',
  monthlyCapQuanta: 'monthly',
};

interface CatalogPageOptions extends Awaited<ReturnType<typeof readCatalog>> {
  staff: Staff;
  toast?: { tone: Tone; text: string } | undefined;
}

const readCatalog = ({ catalog, clusters }: Features, { actor }: Staff) =>
  readAll({
    locations: catalog.listAllLocations(),
    clusters: clusters.listClusters(),
    plans: catalog.listAllPlans(actor),
    images: catalog.listAllImages(actor),
  });

/** `/console/catalog/`: what customers can order, and where. */
function catalogPage(options: CatalogPageOptions): Html {
  const { staff, toast } = options;
  return consoleFrame({ staff, title: 'Catalog', current: 'catalog', toast }, [
    pageHeader({ title: 'Catalog', state: stateOf(options) }),
    planSection(options),
    imageSection(options),
    locationSection(options),
  ]);
}

function stateOf({ plans, images, locations, clusters }: CatalogPageOptions): { tone: Tone; text: string } {
  const open = locations.filter((each) => clusters.some((cluster) => cluster.locationId === each.id));
  const offered = plans.filter((plan) => plan.isOffered);
  const pictures = images.filter((image) => image.isOffered && image.kind === 'system');
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

const slugColumn: Column<{ slug: string }> = codeColumn('slug', 'Name in the API', (row) => code(row.slug));
const offerColumn: Column<{ isOffered: boolean }> = cellColumn('offer', 'State', (row) =>
  badge(row.isOffered ? 'good' : 'neutral', row.isOffered ? 'offered' : 'withdrawn'),
);

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
        cellColumn('name', 'Plan', nameCell(staff, 'plans')),
        slugColumn,
        offerColumn,
        countColumn('vcpus', 'vCPUs', (plan) => plan.vcpus),
        countColumn('memory', 'Memory', (plan) => plan.memoryMb / 1024, { unit: 'GiB' }),
        countColumn('disk', 'Disk', (plan) => plan.diskGb, { unit: 'GB' }),
        {
          key: 'port',
          header: 'Port',
          unit: 'Mbit/s',
          kind: 'figure',
          cell: (plan) => (plan.portMbit === null ? 'not limited' : formatCount(plan.portMbit)),
        },
        figureColumn('hour', 'Per hour', (plan: Plan) => plan.hourlyQuanta, formatMoney),
        figureColumn('month', 'Monthly cap', (plan: Plan) => plan.monthlyCapQuanta, formatMoney),
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
        'Each node needs every offered image in its storage pool: debian-13 as debian-13.qcow2, the ISO virtio-win as virtio-win.iso. A rescue system is for servers that are locked out or don’t boot.',
      actions: addLink(staff, 'images', 'New image'),
    },
    table<Offer<Image>>({
      caption: 'Images',
      card: { line: ['family', 'kind'] },
      columns: [
        cellColumn('name', 'Image', nameCell(staff, 'images')),
        slugColumn,
        offerColumn,
        cellColumn('family', 'Family', (image) => image.family),
        cellColumn('kind', 'Use', (image) => kindWords[image.kind]),
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
        cellColumn('name', 'Location', nameCell(staff, 'locations')),
        slugColumn,
        cellColumn('country', 'Country', (location) => location.country),
        cellColumn('clusters', 'Clusters', (location) => {
          const names = clustersOf(location);
          return names.length > 0 ? link('/console/clusters/', names.join(', ')) : badge('warn', 'none yet');
        }),
      ],
      rows: locations,
      empty: { title: 'No locations yet', text: 'A location is a data center that customers choose.' },
    }),
  );
}

type OfferKind = 'locations' | 'plans' | 'images';
type OfferForm = Readonly<Record<string, string | undefined>>;

interface OfferField {
  name: string;
  label: string;
  hint?: string;
  placeholder?: string;
  isCode?: boolean;
  /** Never changes once it is made. */
  isOptional?: boolean;
  isFixed?: boolean;
  /** What is chosen from, by value, the first by default. */
  options?: Readonly<Record<string, string>>;
}

const kindWords: Readonly<Record<ImageKind, string>> = {
  system: 'New servers',
  rescue: 'Rescue system',
  iso: 'ISO for the CD drive',
};

const slug = (placeholder: string): OfferField => ({
  name: 'slug',
  label: 'Name in the API',
  hint: 'Customers’ programs use it, so it cannot be changed.',
  placeholder,
  isCode: true,
  isFixed: true,
});

const fieldsOf: Readonly<Record<OfferKind, readonly OfferField[]>> = {
  locations: [
    slug('fra1'),
    { name: 'name', label: 'Name', placeholder: 'Frankfurt 1' },
    { name: 'country', label: 'Country', hint: 'Two letters.', placeholder: 'DE' },
  ],
  plans: [
    slug('kvm-2'),
    { name: 'name', label: 'Name', placeholder: 'KVM 2' },
    { name: 'vcpus', label: 'vCPUs', placeholder: '2', isFixed: true },
    { name: 'memory_gib', label: 'Memory, GiB', placeholder: '4', isFixed: true },
    { name: 'disk_gb', label: 'Disk, GB', placeholder: '80', isFixed: true },
    {
      name: 'port_mbit',
      label: 'Port speed, Mbit/s',
      hint: 'Of each server’s public interface, in and out; existing servers have it within a minute. Leave empty for as fast as the node.',
      placeholder: '1000',
      isOptional: true,
    },
    { name: 'hourly', label: 'Price per hour, USD', hint: 'At least 0.0001.', placeholder: '0.0089' },
    {
      name: 'monthly',
      label: 'Monthly cap, USD',
      hint: 'Also the amount that a first order by card charges.',
      placeholder: '6.00',
    },
  ],
  images: [
    slug('debian-13'),
    { name: 'name', label: 'Name', placeholder: 'Debian 13' },
    { name: 'family', label: 'Family', placeholder: 'debian', isFixed: true },
    { name: 'kind', label: 'Use', isFixed: true, options: kindWords },
  ],
};

interface OfferPageOptions {
  staff: Staff;
  kind: OfferKind;
  /** null: a new one. */
  id: number | null;
  title: string;
  form: OfferForm;
  fault?: FieldFault;
}

/** `/console/catalog/{kind}/{id}`, and the page of one that is to be. */
function offerPage(options: OfferPageOptions): Html {
  const { staff, kind, id, title } = options;
  const fixed = id === null ? [] : fieldsOf[kind].filter((each) => each.isFixed);
  return consoleFrame({ staff, title, current: 'catalog' }, [
    pageHeader({ title, state: offerState(options) }),
    fixed.length > 0 &&
      definitionList(
        fixed.map(({ name, label, isCode, options: words }) => {
          const given = options.form[name] ?? '';
          const value = words?.[given] ?? given;
          return { term: label, value: isCode ? code(value) : value };
        }),
      ),
    inputForm(
      {
        action: id === null ? `/console/catalog/${kind}` : `/console/catalog/${kind}/${id}`,
        csrfToken: staff.csrfToken,
        submit: id === null ? `Create ${words[kind]}` : 'Save',
        cancel: link('/console/catalog/', 'Cancel', { kind: 'button' }),
      },
      fields(options),
      { typed: options.form, fault: options.fault },
    ),
  ]);
}

function offerState({ kind, id, form: given }: OfferPageOptions) {
  if (id === null)
    return kind === 'locations'
      ? { tone: 'info' as const, text: 'Customers can order in it once it has a cluster with a node.' }
      : { tone: 'info' as const, text: 'Customers can order it as soon as it is created.' };
  if (kind === 'locations') return undefined;
  return given.offered === 'on'
    ? { tone: 'good' as const, text: 'Customers can order it.' }
    : { tone: 'neutral' as const, text: 'Withdrawn: existing servers keep it, and it cannot be ordered.' };
}

function fields({ kind, id }: OfferPageOptions): FieldOptions[] {
  const texts = fieldsOf[kind]
    .filter((each) => id === null || !each.isFixed)
    .map(({ isFixed: _, isOptional, options, ...each }): FieldOptions => {
      const common = { ...each, required: !isOptional };
      if (options === undefined) return { ...common, maxLength: 120 };
      const choices = Object.entries(options).map(([value, label]) => ({ value, label }));
      return { ...common, kind: 'select', options: choices };
    });
  if (id === null || kind === 'locations') return texts;
  const hint = 'Clear to stop new orders. Existing servers keep running.';
  return [...texts, { kind: 'checkbox', name: 'offered', label: 'Offered', hint }];
}
