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
export * from './feedback.ts';
export * from './form.ts';
export * from './format.ts';
export { registerGallery } from './gallery.page.ts';
export { attributes, type Content, type Html, html, jsonScript } from './html.ts';
export { isSafeHref, type LinkOptions, link, safeHref, withQuery } from './link.ts';
export * from './navigation.ts';
export * from './page-header.ts';
export { presentProvider, senderOf } from './provider.ts';
export { RANGE_DAYS_MAX, type Range, type RangeName, rangePicker, readRange } from './range.ts';
export { type SankeyOptions, sankey } from './sankey.ts';
export type { SankeyLink, SankeyNode } from './sankey-layout.ts';
export { restLabel } from './sankey-narrow.ts';
export { type SegmentMember, type SegmentOptions, segment } from './segment.ts';
export * from './send-page.ts';
export * from './severity.ts';
export * from './shell.ts';
export { isLocalPath, type SignInPageOptions, signInPage } from './sign-in.page.ts';
export * from './table.ts';
export * from './text.ts';
