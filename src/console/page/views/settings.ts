import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLoaded } from '../api.ts';
import { browserZone, type Units, units, zone } from '../format.ts';
import { fleet, fleetSize } from '../liveFleet.ts';
import { CallBehind, grouped, html } from '../parts.ts';
import type { Reply } from '../reply.ts';
import type { DeliverySummary, Webhook } from '../types.ts';
import { Keys } from './keys.ts';
import { Shares } from './shares.ts';
import { Webhooks } from './webhooks.ts';

export function Settings(): VNode {
  const [round, setRound] = useState(0);
  const changed = (): void => setRound((before) => before + 1);
  return html`<${Display} /><${Keys} /><${Webhooks} changed=${changed} /><${Shares} /><${Usage} round=${round} />`;
}

/** The settings that this browser keeps: the time zone and the unit of distances and speeds. */
function Display(): VNode {
  const chosen = (event: Event): string => (event.currentTarget as HTMLSelectElement).value;
  return html`<section aria-label="Display" class="filters">
    <label class="wide">Time zone
      <select value=${zone.value} onChange=${(event: Event) => {
        zone.value = chosen(event);
      }}>
        <option value="">That of this browser: ${nameOfZone(browserZone)}</option>
        ${zoneNames().map((name) => html`<option value=${name}>${nameOfZone(name)}</option>`)}
      </select>
    </label>
    <label class="wide">Ways and speeds in
      <select value=${units.value} onChange=${(event: Event) => {
        units.value = chosen(event) as Units;
      }}>
        <option value="km">Kilometres</option>
        <option value="mi">Miles</option>
      </select>
    </label>
  </section>`;
}

function nameOfZone(name: string): string {
  return name.replaceAll('_', ' ');
}

function zoneNames(): readonly string[] {
  return [...new Set(['UTC', zone.value, ...Intl.supportedValuesOf('timeZone')])].filter(
    (name) => name !== '',
  );
}

/** Of v1, which the description leaves out. */
type AccountUsage = Readonly<
  Record<'areas' | 'vertices' | 'stays', { readonly used: number; readonly limit: number }>
>;

const USAGE = '/api/v1/usage';
const WEBHOOKS = '/api/v1/webhooks?limit=100';
const SUMMARY = '/api/v1/webhooks/metrics/summary';

/** The quantities of the account, by their names in the API. */
const USED = [
  ['areas', 'Areas'],
  ['vertices', 'Vertices of areas'],
  ['stays', 'Stays of devices in areas'],
] as const;

/** What the account uses of its limits, as far as the API says it; asked again with each `round`. */
function Usage({ round }: { round: number }): VNode {
  fleet.round.value; // drawn again with each round
  const usage = useLoaded<AccountUsage>(USAGE, round).reply;
  const webhooks = useLoaded<readonly Webhook[]>(WEBHOOKS, round).reply;
  const summary = useLoaded<DeliverySummary>(SUMMARY, round).reply;
  const refusals = [usage, webhooks, summary].flatMap((reply) =>
    reply?.ok === false ? [reply.message] : [],
  );
  const row = (what: string, count: VNode | string, most: VNode | string): VNode =>
    html`<tr><th scope="row">${what}</th><td class="number">${count}</td><td class="number">${most}</td></tr>`;
  return html`<section aria-label="Usage">
    <h3>Usage</h3>
    <table class="figures">
      <thead><tr><th scope="col">Of this account</th><th scope="col" class="number">Now</th><th scope="col" class="number">At most</th></tr></thead>
      <tbody>
        ${row('Devices', grouped(fleetSize()), '5 000 000')}
        ${USED.map(([name, what]) =>
          row(
            what,
            shown(usage, ({ data }) => grouped(data[name].used)),
            shown(usage, ({ data }) => grouped(data[name].limit)),
          ),
        )}
        ${row(
          'Webhooks',
          shown(webhooks, ({ data }) => String(data.length)),
          '100',
        )}
        ${row(
          'Deliveries of the last 24 hours',
          shown(
            summary,
            ({ data }) =>
              html`${grouped(data.total)}<small>${grouped(data.delivered)} delivered,<br />${grouped(data.exhausted)} given up</small>`,
          ),
          'no limit',
        )}
      </tbody>
    </table>
    ${[...new Set(refusals)].map((message) => html`<p class="error" role="alert">${message}</p>`)}
    <p>A plan may say otherwise. Calls have limits of their own: 120 a minute and 1 000 an hour for a key, or for all sessions of an account together,
      unless the service is set otherwise. The API does not tell how many are used; a call too many is answered with 429.</p>
    <${CallBehind} call=${{ method: 'GET', path: USAGE }} /><${CallBehind} call=${{ method: 'GET', path: SUMMARY }} />
  </section>`;
}

function shown<T>(
  reply: Reply<T> | null,
  text: (answer: Extract<Reply<T>, { ok: true }>) => VNode | string,
): VNode | string {
  if (reply === null) return '…';
  return reply.ok ? text(reply) : '–';
}
