import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, mayChange } from '../../api.ts';
import {
  type AreaBody,
  type AreaType,
  areaDraft,
  canUndo,
  changeDraft,
  draftVertex,
  endDraft,
  removeVertex,
  saveCall,
  undoStep,
} from '../../areaDraft.ts';
import { Confirm, Field, Form, Panel, useDraftText, useSending } from '../../forms.ts';
import { CallBehind, html } from '../../parts.ts';
import type { Area, LatLng } from '../../types.ts';
import { AreaTrial, TRIED_FIELD } from './areaTrial.ts';
import { formatCoordinates, parseCoordinates } from './coordinates.ts';

const TYPES: Readonly<Record<AreaType, string>> = {
  circle: 'Circle',
  point: 'Place',
  polygon: 'Polygon',
  polyline: 'Track',
};
const FIELDS = [
  'name',
  'type',
  'center',
  'points',
  'radius_m',
  'buffer_m',
  'dwell_seconds',
  'color',
  'external_id',
  TRIED_FIELD,
];

/** The draft as a form. `done` is called with what was saved or deleted. */
export function AreaForm({ done }: { done: (said: string) => void }): VNode | null {
  const draft = areaDraft.value;
  const sending = useSending();
  const places = draft === null ? [] : placesOf(draft.body);
  const list = useDraftText(places, formatCoordinates);
  const [note, setNote] = useState('');
  if (draft === null) return null;
  const { id, body } = draft;
  const isRound = isRoundType(body.type);
  const placesField = isRound ? 'center' : 'points';
  const check = (): boolean => {
    const read = parseCoordinates(list.text);
    if (!read.ok) sending.show([{ field: placesField, message: read.message }]);
    return read.ok;
  };
  const save = async (): Promise<void> => {
    if (!mayChange() || !check()) return;
    const reply = await sending.send<Area>(() => call(saveCall(draft)));
    if (reply === null) return;
    endDraft();
    const warnings = (reply.meta.warnings ?? []).map(({ message }) => message);
    done([`${reply.data.name} is saved.`, ...warnings].join(' '));
  };
  const remove = async (): Promise<void> => {
    if ((await sending.send(() => call({ method: 'DELETE', path: `/api/v1/areas/${id}` }))) === null) return;
    endDraft();
    done(`${body.name} is deleted. Its past events stay.`);
  };
  const typeList = (event: InputEvent): void => {
    const { value } = event.currentTarget as HTMLTextAreaElement;
    const read = parseCoordinates(value);
    setNote(read.ok ? (read.note ?? '') : '');
    if (!read.ok) {
      list.type(value, places);
      return;
    }
    const change = changeOf(body.type, read.change);
    const isJson = value.trim().startsWith('{');
    list.type(isJson ? formatCoordinates(read.change.points) : value, placesOf({ ...body, ...change }));
    changeDraft(change);
  };
  const label = mayChange() ? (id === null ? 'New area' : 'Edit area') : 'Try an area';
  return html`<${Panel} label=${label} close=${endDraft}>
    <${Form} label="Area" fields=${FIELDS} sending=${sending} submit=${save}>
      <${Field} name="name" label="Name" value=${body.name} onInput=${onText((name) => changeDraft({ name }))} />
      <${Field} name="type" label="Shape" as="select" value=${body.type} onChange=${onText((type) => changeDraft({ type: type as AreaType }))}>
        ${Object.entries(TYPES).map(([type, label]) => html`<option value=${type}>${label}</option>`)}
      <//>
      <${Field} name=${placesField} as="textarea" rows=${isRound ? 1 : 6} value=${list.text} onInput=${typeList} spellcheck=${false}
        label=${isRound ? 'Centre as latitude, longitude, or GeoJSON' : 'Points as latitude, longitude, one a line, or GeoJSON'} />
      <p class="empty" role="status">${note}</p>
      <${DraftTools} />
      ${isRound && html`<${NumberField} name="radius_m" label="Radius in metres" value=${body.radius_m ?? 0} set=${(radius_m: number) => changeDraft({ radius_m })} />`}
      ${body.type === 'polyline' && html`<${NumberField} name="buffer_m" label="Metres beside the line that are inside" value=${body.buffer_m ?? 0} set=${(buffer_m: number) => changeDraft({ buffer_m })} />`}
      <${NumberField} name="dwell_seconds" label="Minimum stay in seconds" value=${body.dwell_seconds} set=${(dwell_seconds: number) => changeDraft({ dwell_seconds })} />
      <${Field} name="color" label="Colour" type="color" value=${body.color} onInput=${onText((color) => changeDraft({ color }))} />
      <${Field} name="external_id" label="Your own code (may be empty)" value=${body.external_id ?? ''} onInput=${onText((text) => changeDraft({ external_id: text === '' ? null : text }))} />
      <${AreaTrial} sending=${sending} check=${check} />
      ${
        mayChange()
          ? html`<button class="main">${sending.isBusy ? 'Waiting…' : 'Save'}</button>`
          : html`<p class="empty">This account is a viewer: it tries areas, and saves none.</p>`
      }
    <//>
    ${id !== null && mayChange() && html`<${Confirm} label="Delete" sure="Delete this area permanently" run=${remove} />`}
    ${mayChange() && html`<${CallBehind} call=${saveCall(draft)} />`}
  <//>`;
}

/** What can be done to the vertices of a draft without a pointer; the chosen one stands out on the map. */
function DraftTools(): VNode | null {
  const body = areaDraft.value?.body;
  if (body === undefined) return null;
  const count = body.type === 'polygon' || body.type === 'polyline' ? body.points.length : 0;
  const chosen = draftVertex.value;
  const step = (by: number): void => {
    draftVertex.value = ((chosen ?? (by > 0 ? -1 : 0)) + by + count) % count;
  };
  return html`<div class="tools" role="group" aria-label="Drawing">
    <button type="button" aria-keyshortcuts="Control+Z" disabled=${!canUndo.value} onClick=${undoStep}>Undo</button>
    ${
      count > 0 &&
      html`
        <button type="button" onClick=${() => step(-1)}>Previous vertex</button>
        <button type="button" onClick=${() => step(1)}>Next vertex</button>
        <button type="button" aria-keyshortcuts="Delete" disabled=${chosen === null} onClick=${removeVertex}>${
          chosen === null ? 'Remove vertex' : `Remove vertex ${chosen + 1} of ${count}`
        }</button>`
    }
  </div>`;
}

function NumberField(props: {
  name: string;
  label: string;
  value: number;
  set: (value: number) => void;
}): VNode {
  const { name, label, value, set } = props;
  const { text, type } = useDraftText(value, String);
  const onInput = onText((typed) => {
    type(typed, Number(typed));
    set(Number(typed));
  });
  return html`<${Field} name=${name} label=${label} type="number" step="any" value=${text} onInput=${onInput} />`;
}

function onText(take: (text: string) => void): (event: InputEvent) => void {
  return (event) => take((event.currentTarget as HTMLInputElement).value);
}

function isRoundType(type: AreaType): boolean {
  return type === 'circle' || type === 'point';
}

/** What the list of coordinates shows. */
function placesOf({ type, center, points }: AreaBody): readonly LatLng[] {
  if (!isRoundType(type)) return points;
  return center === null ? [] : [center];
}

/** What was read, in the fields of its type; a circle takes the first place. */
function changeOf(
  type: AreaType,
  { points, ...read }: Partial<AreaBody> & { readonly points: readonly LatLng[] },
): Partial<AreaBody> {
  return isRoundType(read.type ?? type) ? { ...read, center: points[0] ?? null } : { ...read, points };
}
