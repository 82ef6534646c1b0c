import { signal } from '@preact/signals';
import type { FunctionComponent, VNode } from 'preact';
import { useEffect } from 'preact/hooks';
import { logOut, token } from '../api.ts';
import { endDraft } from '../areaDraft.ts';
import { html } from '../html.ts';
import { followFleet, line } from '../liveFleet.ts';
import { MapPane } from '../map/mapPane.ts';
import { Areas } from './areas.ts';
import { Devices } from './devices.ts';
import { Events } from './events.ts';
import { Login } from './login.ts';
import { MapPanel } from './map.ts';
import { Settings } from './settings.ts';

const VIEWS: Readonly<Record<string, FunctionComponent>> = {
  Map: MapPanel,
  Devices,
  Areas,
  Events,
  Settings,
};
/** Shown beside the map. */
const WITH_MAP = ['Map', 'Areas'];

const shown = signal(viewOf(location.hash));
addEventListener('hashchange', () => {
  shown.value = viewOf(location.hash);
});

function viewOf(hash: string): string {
  return Object.keys(VIEWS).find((name) => `#${name.toLowerCase()}` === hash) ?? 'Map';
}

/** The login, or the views with what leads to them. */
export function Shell(): VNode {
  const session = token.value;
  useEffect(() => {
    if (session === null) return;
    const ending = new AbortController();
    void followFleet(ending.signal);
    return () => {
      ending.abort();
      endDraft(); // it is not for whoever logs in next
    };
  }, [session]);
  if (session === null) return html`<${Login} />`;
  const View = VIEWS[shown.value] as FunctionComponent;
  const isWithMap = WITH_MAP.includes(shown.value);
  return html`
    <header>
      <h1>Fleet</h1>
      <nav aria-label="Views">
        ${Object.keys(VIEWS).map(
          (name) =>
            html`<a href=${`#${name.toLowerCase()}`} aria-current=${name === shown.value ? 'page' : undefined}>${name}</a>`,
        )}
      </nav>
      <${Line} />
      <button type="button" onClick=${logOut}>Log out</button>
    </header>
    <div class=${isWithMap ? 'with-map' : ''}>
      <${MapPane} isShown=${isWithMap} />
      <main><h2>${shown.value}</h2><${View} /></main>
    </div>
  `;
}

const LINES = { connecting: 'Connecting…', live: 'Live', lost: 'Line lost, trying again…' };

function Line(): VNode {
  const now = line.value;
  const text =
    now.state === 'limited'
      ? `Not live: ${now.message}${now.endsByMs === null ? '' : `, until ${timeOf(now.endsByMs)} at the latest`}. Next try at ${timeOf(now.againAtMs)}.`
      : LINES[now.state];
  return html`<span class=${`line ${now.state}`} role="status">${text}</span>`;
}

function timeOf(ms: number): string {
  return new Date(ms).toLocaleTimeString();
}
