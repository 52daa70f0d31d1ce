/** Sends the forms of a page with input that can't be right, to see how the page says so. */
import type { Page } from 'playwright-core';

/**
 * Forms that change something and have a field to fill. One without a field can't be filled wrongly: it would do what its button
 * says. The number is a form's place among all of the page.
 */
export async function listForms(page: Page): Promise<{ index: number; action: string }[]> {
  return (await page.evaluate(`[...document.forms].flatMap((form, index) => {
    const isFilled = [...form.elements].some((field) => field.matches(
      'input:not([type=hidden], [type=checkbox], [type=radio], [type=submit], [type=button]), textarea'));
    // Attributes, because a field may be named 'action'.
    const action = new URL(form.getAttribute('action') ?? '', location.href).pathname;
    return form.getAttribute('method') === 'post' && isFilled ? [{ index, action }] : [];
  })`)) as { index: number; action: string }[];
}

/** Fills a form wrongly and sends it past the browser's own checks, so that the server's answer is seen. */
export async function sendWrongly(page: Page, index: number): Promise<number> {
  const [response] = await Promise.all([
    page.waitForNavigation({ waitUntil: 'networkidle' }),
    page.evaluate(`((form) => {
      const wrong = { number: '-1', email: 'no address', url: 'no address', datetime: '2026-13-45', date: '' };
      for (const field of form.elements) {
        if (!field.matches('input:not([type=hidden], [type=checkbox], [type=radio], [type=submit], [type=button]), textarea')) continue;
        // A field that shows nothing of its own checks takes any text.
        if (field.type !== 'file') { if (field.type !== 'password') field.type = field.matches('input') ? 'text' : field.type; }
        field.disabled = false;
        if (field.type === 'file') continue;
        field.value = wrong[field.getAttribute('type')] ?? '<b>wrong</b> \\u{1F4A5} ' + 'x'.repeat(300);
      }
      form.noValidate = true;
      HTMLFormElement.prototype.submit.call(form);
    })(document.forms[${index}])`),
  ]);
  return response?.status() ?? 0;
}
