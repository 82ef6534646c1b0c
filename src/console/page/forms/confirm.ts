import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../html.ts';

/** A button that asks once more before it does what cannot be undone; Escape, or leaving it, is a no. */
export function Confirm({
  label,
  sure,
  run,
}: {
  label: string;
  /** What the button says when it asks. */
  sure: string;
  run: () => unknown;
}): VNode {
  const [isAsked, setAsked] = useState(false);
  const onClick = (): void => {
    setAsked(!isAsked);
    if (isAsked) run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !isAsked) return;
    event.stopPropagation();
    setAsked(false);
  };
  return html`<button type="button" class=${isAsked ? 'sure' : ''} onClick=${onClick} onKeyDown=${onKeyDown}
    onBlur=${() => setAsked(false)}>${isAsked ? sure : label}</button>`;
}
