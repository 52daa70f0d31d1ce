import { actionButton, askButton, type Html } from '#service-kit/pages/index.ts';

/**
 * What the surfaces of both servers do alike: guarding pages, tables with their files, and buttons that administer
 * people. What a page looks like is `pages`; how a person signs in is `sign-in`.
 */
export {
  ageColumn,
  countColumn,
  figureColumn,
  linkColumn,
  momentColumn,
  textColumn,
  timeColumn,
} from './columns.ts';
export {
  type DataColumn,
  dataTable,
  fileHref,
  offerData,
  pagedRows,
  rowsLimit,
  sendCsv,
  sendWantedFile,
  wantedFile,
} from './data-table.ts';
export { askToSignIn, isChange, lacksSecondFactor, noSuchPage, readSession, requireToken } from './guard.ts';
export {
  idCursor,
  idFilter,
  isId,
  type ListDeclaration,
  type ListFilter,
  type ListValues,
  numberOf,
  readFilters,
  readList,
} from './list.ts';

interface PersonButtonOptions {
  action: string;
  csrfToken: string;
  fields?: Readonly<Record<string, string | number>>;
}

/** Mails a link that sets a new password; the answer says how it was delivered (`linkDelivery`). */
export function passwordLinkButton(options: PersonButtonOptions): Html {
  return actionButton({ ...options, label: 'Send a password link' });
}

/** Asks first. `who` is the person's name or address, `id` is unique in the page. */
export function removeFactorsButton(
  options: PersonButtonOptions & { id: string; who: string; openKind?: 'button' | 'danger' },
): Html {
  const { who, ...rest } = options;
  return askButton(
    { ...rest, label: 'Remove second factors', title: `Remove the second factors of ${who}?` },
    'For a person who lost all second factors. Their sessions end. They sign in with the password only until they set up a new factor.',
  );
}
