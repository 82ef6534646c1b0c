import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { duration } from '../amounts.ts';
import { nameOf } from '../findDevices.ts';
import { Panel } from '../forms/panel.ts';
import { html } from '../html.ts';
import { events } from '../liveFleet.ts';
import { useLoaded, usePaced } from '../loaded.ts';
import type { Area, DeviceInArea } from '../types.ts';
import { AskWhy } from './askWhy.ts';
import { Curl, List, Time } from '../parts.ts';

/** An area with an entry every second must not use up the calls of an hour. */
const INSIDE_EVERY_MS = 5_000;

/** Who is in an area, asked again after entries and exits there, and what can be done with it. */
export function ChosenArea({
  area,
  edit,
  close,
}: {
  area: Area;
  edit: () => void;
  close: () => void;
}): VNode {
  const [isAsking, setAsking] = useState(false);
  const last = events.value.find(({ data }) => data.areaId === area.id)?.id ?? 0;
  const round = usePaced(last, INSIDE_EVERY_MS);
  const path = `/api/v1/areas/${area.id}/devices?limit=200`;
  return html`<${Panel} label=${`Who is in ${area.name}`} close=${close}>
    <button type="button" onClick=${edit}>Edit the area</button>
    <button type="button" aria-expanded=${isAsking} onClick=${() => setAsking(!isAsking)}>Why did it not report?</button>
    ${isAsking && html`<${AskWhy} area=${area} close=${() => setAsking(false)} />`}
    <${InsideList} round=${round} path=${path} />
    <${Curl} call=${{ method: 'GET', path }} />
  <//>`;
}

function InsideList({ path, round }: { path: string; round: number }): VNode {
  const { reply, reload } = useLoaded<readonly DeviceInArea[]>(path, round);
  return html`<${List} reply=${reply} reload=${reload} empty="Nobody is inside. Whoever comes in is listed here."
    show=${(inside: readonly DeviceInArea[]) =>
      html`<ul class="rows">${inside.map(
        ({ device, since, entered_at, dwell_left_seconds }) => html`<li key=${device.imei}>
        ${nameOf(device)} <small>since <${Time} at=${since} />${entered_at === null && `, ${duration(dwell_left_seconds)} more until it counts as entered`}</small>
      </li>`,
      )}</ul>`} />`;
}
