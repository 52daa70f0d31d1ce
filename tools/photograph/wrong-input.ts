/** Sends the forms of a page with input that can't be right, to see how the page says so. */
import type { Page } from 'playwright-core';

/** Inputs that nothing is typed into. */
const unfilled = '[type=hidden], [type=checkbox], [type=radio], [type=submit], [type=button]';

/**
 * Forms that change something and have a field to fill. One without a field can't be filled wrongly: it would do what its button
 * says. The number is a form's place among all of the page.
 */
export async function listForms(page: Page): Promise<{ index: number; action: string }[]> {
  return (await page.evaluate(`[...document.forms].flatMap((form, index) => {
    const isFilled = [...form.elements].some((field) => field.matches('input:not(' + ${JSON.stringify(unfilled)} + '), textarea'));
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
      for (const field of form.elements) {
        if (!field.matches('input:not(' + ${JSON.stringify(unfilled)} + '), textarea') || field.type === 'file') continue;
        // As text, because a field for numbers or dates takes no other; a password stays hidden.
        if (field.matches('input:not([type=password])')) field.type = 'text';
        field.disabled = false;
        field.value = '<b>wrong</b> \\u{1F4A5} ' + 'x'.repeat(300);
      }
      form.noValidate = true;
      HTMLFormElement.prototype.submit.call(form);
    })(document.forms[${index}])`),
  ]);
  return response?.status() ?? 0;
}
