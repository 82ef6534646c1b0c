import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { serverNowMs } from './api.ts';
import { html } from './parts.ts';

const EVERY_MS = 5_000;
const rounds = signal(0);
let isCounting = false;

/** How long ago something was. The pointer over it shows the exact time. */
export function Ago({ at }: { at: string }): VNode {
  rounds.value; // drawn again with each
  if (!isCounting) setInterval(() => rounds.value++, EVERY_MS);
  isCounting = true;
  const seconds = (serverNowMs() - Date.parse(at)) / 1_000;
  return html`<time datetime=${at} title=${new Date(at).toLocaleString()}>${agoText(seconds)}</time>`;
}

/** In one unit: "now", "12 s ago", "4 min ago", "36 h ago", "2 days ago". A clock may be a little behind: then it is now. */
export function agoText(seconds: number): string {
  if (seconds < 5) return 'now';
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < HOUR) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h ago`;
  return `${Math.floor(seconds / DAY)} days ago`;
}

const HOUR = 3_600;
const DAY = 24 * HOUR;
