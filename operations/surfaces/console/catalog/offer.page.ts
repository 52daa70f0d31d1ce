/** The form of a location, a plan or an image: what is fixed once it is made stands as a fact beside it. */
import {
  type Content,
  code,
  definitionList,
  field,
  form,
  type Html,
  html,
  link,
  pageHeader,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export type OfferKind = 'locations' | 'plans' | 'images';
export type OfferForm = Readonly<Record<string, string | undefined>>;

interface OfferField {
  name: string;
  label: string;
  hint?: string;
  placeholder?: string;
  isCode?: boolean;
  /** Never changes once it is made. */
  isFixed?: boolean;
}

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
  ],
};

const words: Readonly<Record<OfferKind, string>> = { locations: 'location', plans: 'plan', images: 'image' };

export interface OfferPageOptions {
  staff: Staff;
  kind: OfferKind;
  /** null: a new one. */
  id: number | null;
  title: string;
  form: OfferForm;
  fault?: { field: string; message: string } | undefined;
}

/** `/console/catalog/{kind}/{id}`, and the page of one that is to be. */
export function offerPage(options: OfferPageOptions): Html {
  const { staff, kind, id, title } = options;
  const fixed = id === null ? [] : fieldsOf[kind].filter((each) => each.isFixed);
  return consoleFrame(
    {
      staff,
      title,
      current: 'catalog',
      breadcrumb: [{ label: 'Catalog', href: '/console/catalog/' }, { label: title }],
    },
    [
      pageHeader({ title, state: stateOf(options) }),
      fixed.length > 0 &&
        definitionList(
          fixed.map(({ name, label, isCode }) => {
            const value = options.form[name] ?? '';
            return { term: label, value: isCode ? code(value) : value };
          }),
        ),
      form(
        {
          action: id === null ? `/console/catalog/${kind}` : `/console/catalog/${kind}/${id}`,
          csrfToken: staff.csrfToken,
          submit: id === null ? `Create ${words[kind]}` : 'Save',
          cancel: link('/console/catalog/', 'Cancel', { kind: 'button' }),
        },
        fields(options),
      ),
    ],
  );
}

function stateOf({ kind, id, form: given }: OfferPageOptions) {
  if (id === null)
    return kind === 'locations'
      ? { tone: 'info' as const, text: 'Customers can order in it once it has a cluster with a node.' }
      : { tone: 'info' as const, text: 'Customers can order it as soon as it is created.' };
  if (kind === 'locations') return undefined;
  return given.offered === 'on'
    ? { tone: 'good' as const, text: 'Customers can order it.' }
    : { tone: 'neutral' as const, text: 'Withdrawn: existing servers keep it, and it cannot be ordered.' };
}

function fields({ kind, id, form: given, fault }: OfferPageOptions): Content {
  const errorOf = (name: string) => (fault?.field === name ? fault.message : undefined);
  const texts = fieldsOf[kind]
    .filter((each) => id === null || !each.isFixed)
    .map(({ isFixed: _, ...each }) =>
      field({ ...each, required: true, maxLength: 120, value: given[each.name], error: errorOf(each.name) }),
    );
  const offered =
    id !== null &&
    kind !== 'locations' &&
    field({
      kind: 'checkbox',
      name: 'offered',
      label: 'Offered',
      hint: 'Clear to stop new orders. Existing servers keep running.',
      checked: given.offered === 'on',
    });
  return html`${texts}${offered}`;
}
