import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, mayChange } from '../../api.ts';
import { type AreaBody, type AreaType, areaDraft, changeDraft, endDraft, saveCall } from '../../areaDraft.ts';
import { Time } from '../../format.ts';
import { Confirm, Field, Form, Panel, type Sending, useDraftText, useSending } from '../../forms.ts';
import { nameOfImei } from '../../liveFleet.ts';
import { CallBehind, counted, html } from '../../parts.ts';
import type { ApiCall, Reply } from '../../reply.ts';
import type { Area, BacktestResult, LatLng } from '../../types.ts';
import { formatCoordinates, parseCoordinates } from './coordinates.ts';
import { DraftTools } from './draftTools.ts';

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

const EVENTS_SHOWN = 20;

type Answer = Extract<Reply<readonly BacktestResult[]>, { ok: true }>;

interface Trial {
  readonly of: AreaBody;
  readonly atMs: number;
  readonly draft: Answer;
  /** Null: a new area. */
  readonly saved: Answer | null;
}

/** What the draft would have brought in the last week. `check` rejects a draft that is not complete. */
function AreaTrial({ sending, check }: { sending: Sending; check: () => boolean }): VNode {
  const [trial, setTrial] = useState<Trial | null>(null);
  const [isRunning, setRunning] = useState(false);
  const draft = areaDraft.value;
  const run = async (): Promise<void> => {
    if (draft === null || isRunning || !check()) return;
    setRunning(true);
    setTrial(null);
    const atMs = Date.now();
    const tried = await sending.send<readonly BacktestResult[]>(() => call(trialCall(draft.body, atMs)));
    const { id } = draft;
    const saved =
      tried === null || id === null
        ? null
        : await sending.send<readonly BacktestResult[]>(() => call(trialCall(id, atMs)));
    if (tried !== null && (id === null || saved !== null))
      setTrial({ of: draft.body, atMs, draft: tried, saved });
    setRunning(false);
  };
  return html`<div class="trial">
    <button type="button" onClick=${run} aria-disabled=${isRunning}>Try on last week</button>
    <div role="status">
      ${isRunning && html`<p>Replaying the points of last week…</p>`}
      ${trial !== null && trial.of !== draft?.body && html`<p>The draft has changed since. Try it again.</p>`}
      ${trial !== null && trial.of === draft?.body && html`<${Outcome} trial=${trial} />`}
    </div>
    ${draft !== null && html`<${CallBehind} call=${trialCall(draft.body, trial?.atMs ?? Date.now())} />`}
  </div>`;
}

function Outcome({ trial }: { trial: Trial }): VNode {
  const tried = trial.draft.data[0] as BacktestResult;
  const saved = trial.saved?.data[0];
  const changes = saved && compareTrials(tried, saved);
  const { points = 0, notes = [], warnings = [] } = trial.draft.meta;
  return html`
    <p>${sumOf(tried)} in ${counted(points, 'point')} of the last seven days.</p>
    ${saved && html`<p>As it is saved: ${sumOf(saved)}. ${changes ? `${counted(changes.same, 'event is', 'events are')} the same, ${changes.new} new, ${changes.gone} gone.` : 'They are too many to be compared one by one.'}</p>`}
    ${points === 0 && html`<p class="empty">Nothing was recorded last week, so nothing can be said. Save it and watch the events.</p>`}
    <ul>${[...warnings, ...notes].map(({ message }) => html`<li>${message}</li>`)}</ul>
    ${
      tried.events.length > 0 &&
      html`<details><summary>${`The first ${Math.min(EVENTS_SHOWN, tried.events.length)} events`}</summary><ol>${tried.events
        .slice(0, EVENTS_SHOWN)
        .map(
          ({ device, event, timestamp }) =>
            html`<li><${Time} at=${timestamp} /> ${nameOfImei(device)}: ${event}</li>`,
        )}</ol></details>`
    }`;
}

function sumOf({ entries, exits, devices }: BacktestResult): string {
  return `${counted(entries, 'entry', 'entries')} and ${counted(exits, 'exit')} of ${counted(devices, 'device')}`;
}

const WEEK_MS = 7 * 86_400_000;

/** Replays the points of the last seven days against a draft, or against the saved area of this id. */
function trialCall(tried: AreaBody | number, nowMs: number): ApiCall {
  const subject =
    typeof tried === 'number' ? { area_id: tried } : { area: { ...tried, name: tried.name || 'draft' } };
  const window = { from: new Date(nowMs - WEEK_MS).toISOString(), to: new Date(nowMs).toISOString() };
  return { method: 'POST', path: '/api/v1/areas/backtest', body: { ...subject, ...window } };
}

/** Events of the draft that the saved area has, too, and those that only one of them has; null: not all are listed. */
function compareTrials(
  draft: BacktestResult,
  saved: BacktestResult,
): { readonly same: number; readonly new: number; readonly gone: number } | null {
  if (!isComplete(draft) || !isComplete(saved)) return null;
  const known = new Set(saved.events.map(eventKey));
  const same = draft.events.filter((event) => known.has(eventKey(event))).length;
  return { same, new: draft.events.length - same, gone: saved.events.length - same };
}

function isComplete({ entries, exits, events }: BacktestResult): boolean {
  return events.length === entries + exits;
}

function eventKey({ device, event, timestamp }: BacktestResult['events'][number]): string {
  return `${device} ${event} ${timestamp}`;
}
