/**
 * The promises of every component: what comes from outside can't become markup, and nothing is executed or styled
 * from inside the page. A component that is not in the list below fails the first test.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { galleryPage } from './gallery.page.ts';
import * as pages from './index.ts';

const naughty = `"><svg onload=alert(1)>'&lt;</script></textarea><!--\` onx=1 {{7*7}}`;
const token = `csrf${naughty}`;
const href = `/a?b=${encodeURIComponent(naughty)}`;
const now = Date.UTC(2026, 10, 21, 10, 0);
const range = { ...pages.readRange({}, now), error: naughty };
const frame: pages.ShellOptions = {
  area: naughty,
  home: href,
  title: naughty,
  navigation: [{ label: naughty, items: [{ label: naughty, href, key: naughty, count: 3 }] }],
  breadcrumb: [{ label: naughty, href }, { label: naughty }],
  search: { action: href, placeholder: naughty, name: naughty, value: naughty },
  person: { name: naughty, detail: naughty },
  csrfToken: token,
  toast: pages.toast('bad', naughty),
};
const oneField = { name: naughty, label: naughty, hint: naughty, error: naughty };

/** Every exported component with the naughty string wherever text may come in. */
const components: Record<string, () => pages.Html> = {
  actionButton: () =>
    pages.actionButton({ action: href, csrfToken: token, label: naughty, fields: { [naughty]: naughty } }),
  age: () => pages.age(now, now),
  attributes: () => pages.html`<a${pages.attributes({ title: naughty })}></a>`,
  badge: () => pages.badge('bad', naughty),
  alonePage: () => pages.alonePage({ area: naughty, title: naughty, home: href }, naughty),
  chart: () =>
    pages.chart({
      id: naughty,
      title: naughty,
      unit: 'bit/s',
      source: naughty,
      dataUrl: href,
      csvHref: href,
      data: {
        timesMs: [now],
        series: [{ label: naughty, values: [1] }],
        areas: [{ fromMs: now, label: naughty }],
        lines: [{ label: naughty, value: 1 }],
        reasons: [{ fromMs: now, toMs: now + 60_000, text: naughty }],
        flags: [{ timeMs: now, text: naughty, href }],
      },
    }),
  code: () => pages.code(naughty, true),
  codeBlock: () => pages.codeBlock({ code: naughty, label: naughty }),
  confirm: () =>
    pages.confirm({
      action: href,
      csrfToken: token,
      name: naughty,
      consequence: naughty,
      submit: naughty,
      error: naughty,
      fields: { a: naughty },
    }),
  askButton: () =>
    pages.askButton(
      {
        id: naughty,
        label: naughty,
        title: naughty,
        submit: naughty,
        action: href,
        csrfToken: token,
        fields: { a: naughty },
      },
      naughty,
    ),
  copyButton: () => pages.copyButton(naughty, naughty),
  definitionList: () => pages.definitionList([{ term: naughty, value: naughty }]),
  drawer: () => pages.drawer({ id: naughty, open: naughty, title: naughty }, naughty),
  emptyState: () =>
    pages.emptyState({ title: naughty, text: naughty, command: naughty, action: { label: naughty, href } }),
  errorPage: () =>
    pages.errorPage({
      status: 404,
      area: naughty,
      home: href,
      title: naughty,
      text: naughty,
      requestId: naughty,
      faults: [{ path: naughty, message: naughty }],
    }),
  estimate: () => pages.estimate({ id: naughty, url: href }, naughty),
  field: () =>
    pages.html`${[
      pages.field({
        ...oneField,
        value: naughty,
        placeholder: naughty,
        pattern: naughty,
        autocomplete: naughty,
      }),
      pages.field({ ...oneField, kind: 'textarea', value: naughty, placeholder: naughty }),
      pages.field({
        ...oneField,
        kind: 'select',
        value: naughty,
        options: [{ value: naughty, label: naughty }],
      }),
      pages.field({ ...oneField, kind: 'checkbox', value: naughty }),
    ]}`,
  fieldGroup: () => pages.fieldGroup({ legend: naughty, hint: naughty, error: naughty }, naughty),
  form: () =>
    pages.form({ action: href, csrfToken: token, submit: naughty, error: naughty, cancel: naughty }, naughty),
  hiddenField: () => pages.hiddenField(naughty, naughty),
  inputForm: () =>
    pages.inputForm({ action: href, csrfToken: naughty }, [{ name: naughty, label: naughty }, naughty], {
      typed: { [naughty]: naughty },
      fault: [naughty, null].map((field) => ({ message: naughty, field })),
    }),
  html: () => pages.html`<p title="${naughty}">${naughty}${[naughty, [naughty]]}</p>`,
  jsonScript: () => pages.jsonScript(naughty, { [naughty]: naughty }),
  link: () => pages.link(href, naughty, { label: naughty }),
  moment: () => pages.moment(now, now),
  utcTime: () => pages.utcTime(now),
  backButton: () => pages.backButton(),
  banner: () => pages.banner({ tone: 'bad', title: naughty, text: naughty, actions: naughty }),
  otherSubmit: () => pages.otherSubmit({ action: href, label: naughty }),
  pageHeader: () =>
    pages.pageHeader({ title: naughty, state: { tone: 'bad', text: naughty }, actions: naughty }),
  agenda: () => pages.agenda(naughty, [{ tone: 'bad', state: naughty, title: naughty, text: naughty }]),
  progress: () => pages.progress({ label: naughty, detail: naughty }),
  rangePicker: () => pages.rangePicker({ url: `/a?x=${encodeURIComponent(naughty)}`, range }),
  refreshing: () => pages.refreshing({ id: naughty, url: href, everySeconds: 20 }, naughty),
  prose: () => pages.html`${pages.prose(naughty)}`,
  sankey: () =>
    pages.sankey({
      id: naughty,
      title: naughty,
      columns: [naughty, naughty],
      nodes: [
        { id: `a${naughty}`, label: naughty, column: 0, href },
        { id: `b${naughty}`, label: naughty, column: 1 },
      ],
      links: [{ from: `a${naughty}`, to: `b${naughty}`, value: 3 }],
      format: () => naughty,
      emptyText: naughty,
    }),
  section: () =>
    pages.section({ title: naughty, description: naughty, actions: naughty, id: naughty }, naughty),
  segment: () => pages.segment({ label: 'x', title: 'x', members: [], emptyText: 'x' }),
  severityBadge: () => pages.severityBadge('high', 8.1),
  severityBar: () =>
    pages.severityBar({ label: naughty, counts: { critical: 1, unrated: 2000 }, href: () => href }),
  schemePreview: () => pages.schemePreview('dark', naughty, naughty),
  shownOnce: () => pages.shownOnce(naughty, naughty, naughty),
  shareBar: () => pages.shareBar(0.5),
  shell: () => pages.shell(frame, naughty),
  spark: () => pages.spark({ in: [1, null, 2], out: [0, null, 1] }, naughty),
  sparkLine: () => pages.sparkLine([1, null, 2], naughty),
  signInPage: () => pages.signInPage({ area: naughty, email: naughty, error: naughty, next: naughty }),
  skeleton: () => pages.skeleton(2, naughty),
  stat: () => pages.stat({ label: naughty, value: naughty, unit: naughty, source: naughty, href }),
  stats: () => pages.stats(pages.stat({ label: naughty, value: undefined })),
  table: () =>
    pages.table({
      caption: naughty,
      url: href,
      filter: naughty,
      csvHref: href,
      jsonHref: href,
      empty: { title: naughty, text: naughty },
      sort: { by: naughty, direction: 'asc' },
      columns: [
        { key: naughty, header: naughty, unit: naughty, sortable: true, cell: () => naughty },
        { key: 'b', header: 'b', kind: 'figure', cell: () => undefined },
      ],
      rows: [1],
      pages: { label: naughty, nextHref: href },
    }),
  tabs: () => pages.tabs(naughty, [{ label: naughty, href, count: 2 }]),
  toast: () => pages.toast('good', naughty),
};

/** Exported functions that give no markup. */
const noMarkup = new Set([
  'actionsColumn',
  'assetUrl',
  'cellColumn',
  'chartJson',
  'chosenOf',
  'toastOf',
  'codeColumn',
  'coloursOf',
  'crumbsTo',
  'csvLines',
  'isConfirmed',
  'isLocalPath',
  'isRefresh',
  'isSafeHref',
  'presentProvider',
  'senderOf',
  'textOfCell',
  'isoTime',
  'readRange',
  'readSort',
  'registerAssets',
  'registerGallery',
  'restLabel',
  'safeHref',
  'sendPage',
  'sendPaletteHits',
  'tableCsv',
  'tableValues',
  'withQuery',
  ...Object.keys(pages).filter((name) => name.startsWith('format')),
]);

/** Every `<` begins a tag whose attributes are all quoted; since `>` is always escaped, a tag ends at the first one. */
function tagsOf(markup: string): string[] {
  const withoutData = markup.replace(/(<script type="application\/json"[^>]*>)[^<]*/g, '$1');
  assert.doesNotMatch(withoutData.replace(/<[^<>]*>/g, ''), /[<>]/, 'a bare < or > stands in the text');
  return withoutData.match(/<[^<>]*>/g) ?? [];
}

function assertClean(name: string, markup: string): void {
  for (const tag of tagsOf(markup)) {
    assert.match(
      tag,
      /^<(!doctype html|\/?[a-z][a-z0-9-]*( [a-zA-Z][a-zA-Z0-9-]*(="[^"<>]*")?)*)>$/,
      `${name}: ${tag}`,
    );
    assert.doesNotMatch(tag.replace(/"[^"]*"/g, '""'), / (style|on[a-z]+)(=|\s|>)/, `${name}: ${tag}`);
    assert.doesNotMatch(tag, /="\s*(javascript|vbscript|data):/i, `${name}: ${tag}`);
    if (tag.startsWith('<script'))
      assert.match(tag, / src="\/assets\/| type="application\/json"/, `${name}: ${tag}`);
    assert.doesNotMatch(tag, /^<(style|svg onload|iframe|object|embed|base)\b/, `${name}: ${tag}`);
  }
}

describe('components', () => {
  test('every exported function is in the list', () => {
    const functions = Object.entries(pages).filter(
      ([name, value]) => typeof value === 'function' && !noMarkup.has(name),
    );
    assert.deepEqual(functions.map(([name]) => name).sort(), Object.keys(components).sort());
  });

  for (const [name, render] of Object.entries(components)) {
    test(`${name} escapes what it is given and emits no inline script, style or javascript: address`, () => {
      assertClean(name, String(render()));
    });
  }

  test('the way to a page leads from its item of the navigation, whose own page is its end', () => {
    const navigation = [
      { items: [{ label: 'Servers', href: '/s/' }] },
      { items: [{ label: 'Plans', href: '/p/', current: true }] },
    ];
    const end = { label: 'Plans' };
    assert.deepEqual(pages.crumbsTo('Plans', navigation), [end]);
    assert.deepEqual(pages.crumbsTo('S-1', navigation), [{ ...end, href: '/p/' }, { label: 'S-1' }]);
    assert.deepEqual(pages.crumbsTo('Your account', navigation.slice(0, 1)), [{ label: 'Your account' }]);
  });

  test('no name in a page turns the direction of what follows it', () => {
    let sent = '';
    const reply: object = {
      ...{
        request: { method: 'GET', headers: {} },
        code: () => reply,
        headers: () => reply,
        type: () => reply,
      },
      send: (text: string) => {
        sent = text;
        return reply;
      },
    };
    const name = 'invoice\u202etxt.\u2066exe\u200f';
    pages.sendPage(reply as Parameters<typeof pages.sendPage>[0], pages.html`<p title="${name}">${name}</p>`);
    assert.equal(sent, '<p title="invoicetxt.exe\u200f">invoicetxt.exe\u200f</p>');
  });

  test('the checker itself finds what it looks for', () => {
    for (const bad of [
      '<p onclick="x">',
      '<p style="x">',
      '<a href="javascript:x">',
      '<a href=/x>',
      '<script>x</script>',
      '<p>a < b</p>',
      '<script src="https://x/">',
      '<style>',
    ]) {
      assert.throws(() => assertClean('planted', bad), bad);
    }
  });

  test('the gallery shows each component', () => {
    const page = String(galleryPage({ url: '/dev/gallery', nowMs: now, query: { toast: '1' } }));
    assertClean('gallery', page);
    const marks = [
      'class="sidebar"',
      'class="breadcrumb"',
      'role="search"',
      'class="theme-switch',
      'action="/sign-out"',
      'class="page-header"',
      'class="state ',
      'class="stats"',
      'class="table-scroll"',
      'aria-sort=',
      'class="exports"',
      'class="empty"',
      '<svc-chart',
      'class="chart-empty"',
      'class="chart-flag-list"',
      'class="sankey"',
      'class="badge ',
      'class="definitions"',
      'class="field-error"',
      'class="field field-checkbox"',
      'data-confirm=',
      'data-copy=',
      'class="code-block"',
      'class="tabs"',
      'class="drawer"',
      'class="toast ',
      'class="banner ',
      '<progress',
      'class="skeleton"',
      'class="range-picker"',
      'data-refresh=',
      'data-palette=',
      'class="share"',
      'class="severities"',
      'class="unknown"',
      'name="csrf_token"',
    ];
    for (const mark of marks) assert.ok(page.includes(mark), mark);
  });

  test('no id stands twice in the gallery', () => {
    const page = String(galleryPage({ url: '/dev/gallery', nowMs: now, query: {} }));
    const ids = [...page.matchAll(/ id="([^"]*)"/g)].map((match) => match[1]);
    assert.deepEqual(
      ids.filter((id, at) => ids.indexOf(id) !== at),
      [],
    );
  });

  test('chart data can not close its script element, and reads back the same', () => {
    const label = `</script><script>alert(1)</script><!-- \u2028 & `;
    const made = String(pages.jsonScript('x', { label }));
    const inside = made.slice(made.indexOf('>') + 1, made.lastIndexOf('</script>'));
    assert.doesNotMatch(inside, /[<>&\u2028]/);
    assert.deepEqual(JSON.parse(inside), { label });
  });

  test('chart data is rounded to readable digits', () => {
    const values = [1 / 3, 49_897.333333333336, 1e10 + 1 / 3, null];
    const json = pages.chartJson('bit/s', { timesMs: [0, 1, 2, 3], series: [{ label: 'x', values }] });
    assert.match(JSON.stringify(json), /"values":\[0\.333333,49897\.3,10000000000\.3,null\]/);
  });

  test('html refuses a promise, attributes refuse handlers and styles, a POST form refuses to miss its token', () => {
    assert.throws(() => pages.html`${Promise.resolve('x') as never}`, TypeError);
    for (const name of ['onclick', 'style', 'x y', 'a"b'])
      assert.throws(() => pages.attributes({ [name]: 'x' }), TypeError);
    assert.throws(() => pages.form({ action: '/a', submit: 'x' }, ''), TypeError);
    assert.throws(() => pages.shell({ ...frame, csrfToken: undefined }, ''), TypeError);
  });

  test('a GET form carries no token', () => {
    assert.doesNotMatch(
      String(pages.form({ action: '/a', method: 'get', csrfToken: token, submit: 'x' }, '')),
      /csrf/,
    );
  });

  test('a password is never sent back into a page', () => {
    assert.doesNotMatch(
      String(pages.field({ kind: 'password', name: 'p', label: 'P', value: 'secret' })),
      /secret/,
    );
  });

  test('an action that asks for the name takes the name only', () => {
    assert.equal(pages.isConfirmed({ confirm_name: ' web-1 ' }, 'web-1'), true);
    for (const body of [{}, null, 'web-1', { confirm_name: 'web-2' }, { confirm_name: ['web-1'] }]) {
      assert.equal(pages.isConfirmed(body, 'web-1'), false);
    }
  });

  test('a forged sort name gives the default order', () => {
    const columns = [
      { key: 'name', header: 'Name', sortable: true, cell: () => '' },
      { key: 'x', header: 'X', cell: () => '' },
    ];
    const fallback = { by: 'name', direction: 'asc' } as const;
    assert.deepEqual(pages.readSort({ sort: 'x', direction: 'desc' }, columns, fallback), fallback);
    assert.deepEqual(pages.readSort({ sort: 'name', direction: 'desc' }, columns, fallback), {
      by: 'name',
      direction: 'desc',
    });
  });

  test('the bar of severities shows one of a thousand, fills its width, and says every number in words', () => {
    const bar = String(
      pages.severityBar({
        label: 'x',
        counts: { critical: 1, low: 999, none: 2 },
        href: (name) => `/f?s=${name}`,
      }),
    );
    const parts = [...bar.matchAll(/<rect fill="var\(--([\w-]+)\)" x="([\d.]+)%" width="([\d.]+)%"/g)];
    assert.deepEqual(
      parts.map(([, name]) => name),
      ['bad-text', 'chart-1', 'n8'],
    );
    assert.ok(Number(parts[0]![3]) >= 1.5, 'one of a thousand is seen');
    const last = parts.at(-1)!;
    assert.ok(Math.abs(Number(last[2]) + Number(last[3]) - 100) < 0.1, 'the parts fill the bar');
    const words = bar.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
    assert.match(words, /1 critical ○ 0 high ○ 0 medium ● 999 low ○ 2 none/);
    assert.doesNotMatch(words, /unrated/, 'what the database rates is no question');
    assert.ok(
      bar.includes('href="/f?s=critical"') && !bar.includes('href="/f?s=high"'),
      'no link to nothing',
    );
    assert.doesNotMatch(String(pages.severityBar({ label: 'x', counts: {} })), /NaN| x="/);
  });

  test('a segment says how many members more there are, where there are any', () => {
    const members = [{ name: 'web', tone: 'good' as const, detail: '10.0.0.2', state: 'running' }];
    const of = (rest: { more?: number }) =>
      String(pages.segment({ label: 'x', title: 'x', members, emptyText: 'x', ...rest }));
    assert.match(of({ more: 3 }), /and 3 more/);
    for (const rest of [{ more: 0 }, {}]) assert.doesNotMatch(of(rest), / more/);
  });

  test('a missing value reads unknown, in figures, facts and tables', () => {
    assert.match(String(pages.stat({ label: 'x', value: undefined, unit: 'Mbit/s' })), /unknown<\/span>/);
    assert.match(String(pages.definitionList([{ term: 'x', value: null }])), /unknown/);
    assert.match(String(components.table!()), /<span class="unknown">unknown<\/span>/);
  });
});
