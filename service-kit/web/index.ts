/**
 * What the surfaces of both servers do alike: guarding pages, tables with their files, and buttons that administer
 * people. What a page looks like is `pages`; how a person signs in is `sign-in`.
 */
export { sendCsv } from './csv-file.ts';
export {
  type DataColumn,
  dataTable,
  fileHref,
  offerData,
  pagedRows,
  rowsLimit,
  sendWantedFile,
  wantedFile,
} from './data-table.ts';
export { askToSignIn, isChange, lacksSecondFactor, noSuchPage, readSession, requireToken } from './guard.ts';
export { passwordLinkButton, removeFactorsButton } from './person-buttons.ts';
