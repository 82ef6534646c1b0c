import { type Signal, signal } from '@preact/signals';
import htm from 'htm';
import { type ComponentChildren, h, type VNode } from 'preact';
import type { ApiCall, Reply } from './reply.ts';

/** Markup as a tagged template, without a build step. */
export const html = (htm as unknown as { bind(create: typeof h): unknown }).bind(h) as (
  strings: TemplateStringsArray,
  ...values: unknown[]
) => VNode;

/** A setting that the browser keeps. `parse` reads it from any text; '' means that nothing is kept. */
export function kept<T extends string>(name: string, parse: (text: string) => T): Signal<T> {
  const storage = globalThis.localStorage;
  const choice = signal(parse(storage?.getItem(name) ?? ''));
  choice.subscribe((value) => storage?.setItem(name, value));
  return choice;
}

/** Whether each view shows the calls behind it. */
export const apiShown = kept('fleet-api', (text) => (text === 'shown' ? 'shown' : ''));

/** A call behind what a view shows, to be pasted into a shell or a program; nothing until a person asks for them. */
export function CallBehind({ call }: { call: ApiCall }): VNode | null {
  if (apiShown.value === '') return null;
  const { method, path } = call;
  return html`<section class="call" aria-label=${`The call ${method} ${path}`}>
    <pre tabindex="0" aria-label="As curl">${curlOf(location.origin, call)}</pre>
    <pre tabindex="0" aria-label="In TypeScript">${fetchOf(location.origin, call)}</pre>
    <p>SESSION is the token that POST /api/v1/session answers. With an API key, send X-API-Key to /api/v3 instead.</p>
  </section>`;
}

/** A list that was asked for: waiting, failed, empty, or there. */
export function List<T>(props: {
  reply: Reply<readonly T[]> | null;
  empty: ComponentChildren;
  reload: () => void;
  show: (items: readonly T[]) => VNode;
}): VNode {
  const { reply, empty, reload, show } = props;
  if (reply === null) return html`<p class="loading" aria-live="polite">Loading…</p>`;
  if (!reply.ok)
    return html`<p class="error" role="alert">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  return reply.data.length === 0 ? html`<p class="empty">${empty}</p>` : show(reply.data);
}

/** Something that is shown this one time, and below it how it is used. */
export function Secret({ label, text, use }: { label: string; text: string; use?: string }): VNode {
  return html`<div class="secret" role="status">${label} <code>${text}</code> Copy it now: it is not shown again.
    ${use !== undefined && html`<pre tabindex="0" aria-label="How it is used">${use}</pre>`}
  </div>`;
}

/** "1 point", "12 points", "38 914 points". */
export function counted(count: number, noun: string, nouns = `${noun}s`): string {
  return `${grouped(count)} ${count === 1 ? noun : nouns}`;
}

const NUMBERS = new Intl.NumberFormat('en');

/** 20 000, which no line break comes between. */
export function grouped(count: number): string {
  return NUMBERS.format(count).replaceAll(',', '\u00a0');
}

/** A length of time as the API writes it in sentences (formatDuration): "42 s", "4 min 30 s", "36 h", "3 days 2 h". */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Number(seconds.toFixed(3))} s`;
  const whole = Math.round(seconds);
  if (whole < 3_600) return inTwoUnits(whole, 60, 'min', 's');
  const minutes = Math.round(seconds / 60);
  if (minutes < 2_880) return inTwoUnits(minutes, 60, 'h', 'min');
  return inTwoUnits(Math.round(seconds / 3_600), 24, 'days', 'h');
}

function inTwoUnits(amount: number, perUnit: number, unit: string, smallUnit: string): string {
  const rest = amount % perUnit;
  const whole = `${(amount - rest) / perUnit} ${unit}`;
  return rest === 0 ? whole : `${whole} ${rest} ${smallUnit}`;
}

/** The call as a line for a POSIX shell. The token stays out of it: it is taken from the variable SESSION. */
export function curlOf(origin: string, { method, path, body, idempotencyKey }: ApiCall): string {
  return [
    'curl -s',
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    '-H "Authorization: Bearer $SESSION"',
    ...(idempotencyKey === undefined ? [] : [`-H ${shellWord(`Idempotency-Key: ${idempotencyKey}`)}`]),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json' -d ${shellWord(JSON.stringify(body))}`]),
    shellWord(`${origin}${path}`),
  ].join(' ');
}

/** The call as TypeScript. The token stays out of it: it is taken from the constant SESSION. */
export function fetchOf(origin: string, { method, path, body, idempotencyKey }: ApiCall): string {
  const headers = [
    "Authorization: 'Bearer ' + SESSION",
    ...(idempotencyKey === undefined ? [] : [`'Idempotency-Key': ${JSON.stringify(idempotencyKey)}`]),
    ...(body === undefined ? [] : ["'Content-Type': 'application/json'"]),
  ];
  return [
    `const response = await fetch(${JSON.stringify(origin + path)}, {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    `  headers: { ${headers.join(', ')} },`,
    ...(body === undefined ? [] : [`  body: JSON.stringify(${JSON.stringify(body)}),`]),
    '});',
    path.startsWith('/api/v1/stream')
      ? 'for await (const text of response.body!.pipeThrough(new TextDecoderStream())) console.log(text);'
      : 'const { data } = await response.json();',
  ].join('\n');
}

/** The first thing that a key can be asked, as a line for a POSIX shell; null where its permissions open nothing by themselves. */
export function keyCurl(origin: string, key: string, scopes: readonly string[]): string | null {
  const path = FIRST_CALLS.find(([scope]) => scopes.includes(scope))?.[1];
  return path === undefined
    ? null
    : `curl -s -H ${shellWord(`X-API-Key: ${key}`)} ${shellWord(origin + path)}`;
}

const FIRST_CALLS = [
  ['read_devices', '/api/v3/devices?limit=5'],
  ['read_locations', '/api/v3/devices/changes?limit=5'],
  ['read_events', '/api/v3/events?limit=5'],
  ['read_areas', '/api/v3/areas?limit=5'],
  ['manage_webhooks', '/api/webhooks'],
] as const;

function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
