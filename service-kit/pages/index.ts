/**
 * The pages of both servers: typed functions that return HTML, in one visual language.
 *
 * A page is `sendPage(reply, shell({…}, [pageHeader({…}), …]))`. Values in `html` templates are escaped, links come
 * from `link` alone, and nothing here prints inline script or style, because the policy of `sendPage` forbids them.
 * A server registers `registerAssets(app)` once, and outside production `registerGallery(app)`, whose page
 * `/dev/gallery` shows every component. Units in names: `…Ms` is UTC milliseconds, money is whole quanta of 0.0001.
 */

export { type AssetName, assetUrl, registerAssets } from './assets.ts';
export { type ChartOptions, chart, chartJson, type SparkValues, spark, sparkLine } from './chart.ts';
export type {
  ChartArea,
  ChartData,
  ChartFlag,
  ChartLine,
  ChartReason,
  ChartSeries,
  ChartUnit,
} from './chart-data.ts';
export { formatChartValue } from './chart-data.ts';
export type { Tone } from './colours.ts';
export { coloursOf, REST_COLOUR } from './colours.ts';
export { type ErrorPageOptions, errorPage } from './error.page.ts';
export {
  type AgendaItem,
  agenda,
  type BannerOptions,
  backButton,
  badge,
  banner,
  chosenOf,
  type EmptyStateOptions,
  emptyState,
  type ProgressOptions,
  progress,
  skeleton,
  toast,
  toastOf,
} from './feedback.ts';
export {
  type AskOptions,
  actionButton,
  askButton,
  type CheckboxField,
  CONFIRM_FIELD,
  type ConfirmOptions,
  CSRF_FIELD,
  confirm,
  type FieldOptions,
  type FormOptions,
  field,
  fieldGroup,
  form,
  hiddenField,
  type InputField,
  inputForm,
  isConfirmed,
  otherSubmit,
  type Refused,
  type SelectField,
  type TextAreaField,
} from './form.ts';
export {
  formatAge,
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatMoney,
  formatMoneyAbout,
  formatMonth,
  formatPacketRate,
  formatPercent,
  formatTime,
  type Known,
} from './format.ts';
export { registerGallery } from './gallery.page.ts';
export { attributes, type Content, type Html, html, jsonScript } from './html.ts';
export { isSafeHref, type LinkOptions, link, safeHref, withQuery } from './link.ts';
export {
  type DrawerOptions,
  drawer,
  type EstimateOptions,
  estimate,
  type RefreshOptions,
  refreshing,
  type Tab,
  tabs,
} from './navigation.ts';
export {
  type PageHeaderOptions,
  pageHeader,
  type SectionOptions,
  type StatOptions,
  section,
  stat,
  stats,
} from './page-header.ts';
export { presentProvider, senderOf } from './provider.ts';
export { RANGE_DAYS_MAX, type Range, type RangeName, rangePicker, readRange } from './range.ts';
export { type SankeyOptions, sankey } from './sankey.ts';
export type { SankeyLink, SankeyNode } from './sankey-layout.ts';
export { restLabel } from './sankey-narrow.ts';
export { type SegmentMember, type SegmentOptions, segment } from './segment.ts';
export {
  CONTENT_SECURITY_POLICY,
  inlineImagePolicy,
  isRefresh,
  PAGE_HEADERS,
  PALETTE_HITS_MAX,
  PALETTE_TEXT_MAX,
  type PaletteHit,
  sendPage,
  sendPaletteHits,
} from './send-page.ts';
export {
  type SeverityBarOptions,
  type SeverityCounts,
  severityBadge,
  severityBar,
} from './severity.ts';
export {
  alonePage,
  type Crumb,
  crumbsTo,
  type NavigationGroup,
  type NavigationItem,
  type PaletteOptions,
  type Person,
  type ShellOptions,
  schemePreview,
  shell,
} from './shell.ts';
export { isLocalPath, type SignInPageOptions, signInPage } from './sign-in.page.ts';
export {
  actionsColumn,
  type CardLayout,
  type Column,
  cellColumn,
  codeColumn,
  csvLines,
  type DataField,
  type DataValue,
  isoTime,
  readSort,
  type Sort,
  type SortDirection,
  shareBar,
  type TableOptions,
  table,
  tableCsv,
  tableValues,
  textOfCell,
} from './table.ts';
export {
  age,
  type CodeBlockOptions,
  code,
  codeBlock,
  copyButton,
  type Definition,
  definitionList,
  moment,
  prose,
  utcTime,
} from './text.ts';
