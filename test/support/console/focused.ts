import type { Page } from 'playwright-core';
import { waitFor } from '../waitFor.ts';

/** Waits until what has the focus is called so, or begins with it. */
export function focused(page: Page, name: string): Promise<void> {
  let last = '';
  return waitFor(
    async () => {
      last = await focusedName(page);
      return last.startsWith(name);
    },
    () => `the focus is on "${last}" and not on "${name}"`,
  );
}

/** The label or text of what has the focus. */
export function focusedName(page: Page): Promise<string> {
  return page.evaluate<string>(
    '((at) => (at?.labels?.[0]?.textContent ?? at?.ariaLabel ?? at?.textContent ?? "").trim())(document.activeElement)',
  );
}
