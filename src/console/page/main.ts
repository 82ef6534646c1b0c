import { type FunctionComponent, render, type VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { addressOf, followAddress, forgetChoices, shownView, VIEW_NAMES, type ViewName } from './address.ts';
import { askRoleAgain, logIn, logOut, mayChange, roleNote, sessionEnd, token } from './api.ts';
import { endDraft } from './areaDraft.ts';
import { timeText } from './format.ts';
import { Icon, type IconName } from './icons.ts';
import { followFleet, line } from './liveFleet.ts';
import { apiShown, html } from './parts.ts';
import { Areas } from './views/areas/areas.ts';
import { Devices } from './views/devices.ts';
import { Events } from './views/events.ts';
import { MapPane, MapPanel } from './views/map.ts';
import { Palette } from './views/palette.ts';
import { Settings } from './views/settings.ts';

const VIEWS: Readonly<Record<ViewName, FunctionComponent>> = {
  Map: MapPanel,
  Devices,
  Areas,
  Events,
  Settings,
};
/** Shown beside the map. */
const WITH_MAP: readonly ViewName[] = ['Map', 'Areas'];

/** The login, or the views with what leads to them. */
function Shell(): VNode {
  const session = token.value;
  useEffect(() => {
    if (session === null) return;
    const ending = new AbortController();
    void followFleet(ending.signal);
    return () => {
      ending.abort();
      endDraft(); // the next person to log in must not see it
    };
  }, [session]);
  const shown = shownView.value;
  useEffect(() => void askRoleAgain(), [session, shown]);
  if (session === null) return html`<${Login} />`;
  const View = VIEWS[shown];
  const isWithMap = WITH_MAP.includes(shown);
  return html`
    <header>
      <h1>Fleet</h1>
      <nav aria-label="Views">
        ${VIEW_NAMES.map(
          (name) =>
            html`<a href=${addressOf(name)} aria-current=${name === shown ? 'page' : undefined}><${Icon} name=${name.toLowerCase() as IconName} />${name}</a>`,
        )}
      </nav>
      <${Line} />
      ${!mayChange() && html`<span class="status" title="This account is a viewer: it sees everything, and changes nothing.">Viewer</span>`}
      <${Palette} />
      <button type="button" class="quiet" aria-pressed=${apiShown.value !== ''} title="Show the calls behind each view"
        onClick=${() => {
          apiShown.value = apiShown.value === '' ? 'shown' : '';
        }}><${Icon} name="api" /><span>API</span></button>
      <button type="button" class="quiet" onClick=${leave}><${Icon} name="leave" /><span>Log out</span></button>
    </header>
    <${RoleNote} />
    <div class=${isWithMap ? 'with-map' : ''}>
      <${MapPane} isShown=${isWithMap} />
      <main key=${shown}><h2 tabindex="-1">${shown}</h2><${View} /></main>
    </div>
  `;
}

function RoleNote(): VNode | null {
  const close = (): void => {
    roleNote.value = '';
  };
  if (roleNote.value === '') return null;
  return html`<p class="note" role="alert">${roleNote.value} <button type="button" onClick=${close}>Understood</button></p>`;
}

function leave(): Promise<void> {
  forgetChoices();
  return logOut();
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
  return timeText(ms, 'time');
}

function Login(): VNode {
  const [error, setError] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const first = useRef<HTMLInputElement>(null);
  // Browsers heed autofocus once for a page: not after a logout.
  useLayoutEffect(() => first.current?.focus(), []);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setError(await logIn(String(fields.get('email')), String(fields.get('password'))));
    setBusy(false);
  };
  return html`<main class="card">
    <h1>Fleet</h1>
    <p role="status">${sessionEnd.value}</p>
    <form onSubmit=${submit}>
      <label>E-mail <input ref=${first} name="email" type="email" autocomplete="username" required /></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
      <p class="error" role="alert">${error}</p>
      <button class="main" disabled=${isBusy}>Log in</button>
    </form>
    <small>No password yet? The operator of the service sets one with <code>fleet account:update</code> <code>--email …</code> <code>--password …</code></small>
  </main>`;
}

followAddress();
addEventListener('visibilitychange', () => {
  if (!document.hidden) void askRoleAgain();
});
const place = document.getElementById('console');
if (place !== null) render(html`<${Shell} />`, place);
