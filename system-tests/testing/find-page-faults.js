// Runs in the page under test, which has no module of ours: what a careful look at it finds.
export default function findFaults(isPhone, destructive) {
  const faults = new Set();
  const width = document.documentElement.clientWidth;
  const short = (text) => text.trim().replace(/\s+/g, ' ').slice(0, 60);
  const isSeen = (element) => element.checkVisibility({ visibilityProperty: true });
  const lookThrough = (root, left, right, where) => {
    const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
      const element = node.parentElement;
      if (node.nodeValue.trim() === '' || !isSeen(element)) continue;
      if (element.closest('script, style, svg, option, textarea, pre, code, .visually-hidden')) continue;
      if (node.nodeValue.includes('`')) faults.add(`${where}shows a code mark: "${short(node.nodeValue)}"`);
      const range = document.createRange();
      range.selectNodeContents(node);
      const runsOff = [...range.getClientRects()].some(
        ({ left: from, right: to, width: wide }) => wide > 0 && (from < left - 1 || to > right + 1),
      );
      if (!runsOff) continue;
      let inside = element;
      // What scrolls in a box of its own, or is cut with an ellipsis, is meant to be wider.
      while (inside !== null && inside !== root) {
        const style = getComputedStyle(inside);
        if (/auto|scroll/.test(style.overflowX) || style.textOverflow === 'ellipsis') break;
        inside = inside.parentElement;
      }
      if (inside === root) faults.add(`${where}text runs off: "${short(node.nodeValue)}"`);
    }
    for (const current of root.querySelectorAll(':is(.tabs, .segments) > [aria-current]'))
      if (
        isSeen(current) &&
        current.getBoundingClientRect().right > current.parentElement.getBoundingClientRect().right + 1
      )
        faults.add(`${where}the tab that is shown is out of sight: "${short(current.textContent)}"`);
    for (const box of root.querySelectorAll('.table-scroll')) {
      const more = box.scrollWidth - box.clientWidth;
      if (isSeen(box) && more > 1)
        faults.add(`${where}a table is ${more} px wider than its place: "${short(box.ariaLabel ?? '')}"`);
    }
    if (!isPhone) return;
    for (const target of root.querySelectorAll(
      'button, .button, select, input:not([type=hidden]), nav a, tbody th > a',
    )) {
      if (!isSeen(target) || target.closest('.visually-hidden, svc-chart, p')) continue;
      const box = (
        target.matches('[type=checkbox], [type=radio]') ? (target.closest('label, .field') ?? target) : target
      ).getBoundingClientRect();
      if (box.height < 43.5)
        faults.add(`${where}a target of ${Math.round(box.height)} px: "${short(target.textContent ?? '')}"`);
      const scroller = target.closest('.table-scroll');
      if (
        target.matches('button, .button') &&
        scroller &&
        box.right > scroller.getBoundingClientRect().right + 1
      )
        faults.add(`${where}a button is off the screen: "${short(target.textContent ?? '')}"`);
    }
  };
  if (document.documentElement.scrollWidth > width) faults.add('the page is wider than its window');
  const signOut = document.querySelector('.sidebar form[action$="sign-out"] button');
  if (signOut && isSeen(signOut) && signOut.getBoundingClientRect().bottom > innerHeight)
    faults.add('"Sign out" is out of sight');
  lookThrough(document.body, 0, width, '');
  for (const button of document.querySelectorAll('form[method=post] button')) {
    const words = button.textContent ?? '';
    if (destructive.test(words.trim()) && !button.closest('.drawer, .confirm, dialog'))
      faults.add(`"${short(words)}" acts without asking`);
  }
  const drawers = [...document.querySelectorAll('.drawer[popover]')];
  for (const drawer of drawers) {
    drawer.showPopover();
    const { left, right } = drawer.getBoundingClientRect();
    const where = `drawer ${drawer.id}: `;
    if (drawer.scrollWidth > drawer.clientWidth) faults.add(`${where}is wider than itself`);
    lookThrough(drawer, left, right, where);
    drawer.hidePopover();
  }
  return { drawers: drawers.length, faults: [...faults] };
}
