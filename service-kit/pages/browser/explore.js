// The explorer's box and pictures: completion while one types, choices that apply at once, flows of a name lit.

const box = document.querySelector('[data-complete]');
const list = document.getElementById('explore-values');
let asked = 0;
let timer;

async function complete() {
  asked += 1;
  const mine = asked;
  try {
    const answer = await fetch(`${box.dataset.complete}?q=${encodeURIComponent(box.value)}`);
    if (!answer.ok || mine !== asked) return;
    const texts = await answer.json();
    list.replaceChildren(...texts.map((value) => Object.assign(document.createElement('option'), { value })));
  } catch {
    // The box works without completion.
  }
}

box?.addEventListener('input', () => {
  clearTimeout(timer);
  timer = setTimeout(() => void complete(), 150);
});
box?.addEventListener('focus', () => void complete());
box?.form?.addEventListener('change', (event) => {
  if (event.target instanceof HTMLSelectElement) box.form.requestSubmit();
});

function light(event) {
  const node = event.target instanceof Element ? event.target.closest('.sankey-node') : null;
  const picture = event.target instanceof Element ? event.target.closest('.sankey') : null;
  if (!picture) return;
  const isOver = node !== null && event.type !== 'focusout';
  picture.classList.toggle('has-lit', isOver);
  for (const flow of picture.querySelectorAll('.sankey-flows path'))
    flow.classList.toggle('is-lit', isOver && JSON.parse(flow.dataset.ends).includes(node.dataset.node));
}
for (const type of ['mouseover', 'focusin', 'focusout']) document.addEventListener(type, light);
