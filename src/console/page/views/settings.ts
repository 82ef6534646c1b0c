import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { html } from '../html.ts';
import { Keys } from './keys.ts';
import { Usage } from './usage.ts';
import { Webhooks } from './webhooks.ts';

export function Settings(): VNode {
  const [round, setRound] = useState(0);
  const changed = (): void => setRound((before) => before + 1);
  return html`<${Keys} /><${Webhooks} changed=${changed} /><${Usage} round=${round} />`;
}
