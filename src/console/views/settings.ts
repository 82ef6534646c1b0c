import type { VNode } from 'preact';
import { html } from '../html.ts';
import { Keys } from './keys.ts';
import { Usage } from './usage.ts';
import { Webhooks } from './webhooks.ts';

export function Settings(): VNode {
  return html`<${Keys} /><${Webhooks} /><${Usage} />`;
}
