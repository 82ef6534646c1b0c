import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { html } from '../html.ts';

/** What a button opens: it takes the focus, Escape closes it, and then the focus is where it was. */
export function Panel({
  label,
  close,
  children,
}: {
  label: string;
  close: () => void;
  children: ComponentChildren;
}): VNode {
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const panel = place.current;
    panel?.focus();
    return () => {
      const focused = document.activeElement;
      if (focused !== null && focused !== document.body && !panel?.contains(focused)) return;
      (before?.isConnected ? before : document.querySelector<HTMLElement>('main h2'))?.focus();
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    close();
  };
  return html`<section class="panel" ref=${place} tabindex="-1" aria-label=${label} onKeyDown=${onKeyDown}>
    <h3>${label}</h3>
    ${children}
    <button type="button" onClick=${close}>Close</button>
  </section>`;
}
