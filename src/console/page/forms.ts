import { type ComponentChildren, createContext, type VNode } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Icon } from './icons.ts';
import { html } from './parts.ts';
import type { FieldError, Reply } from './reply.ts';

const Shown = createContext<{ readonly id: string; readonly errors: readonly FieldError[] }>({
  id: '',
  errors: [],
});

/** A form whose fields show their errors from the API. Errors of fields outside `fields` are shown at its end. */
export function Form(props: {
  label: string;
  fields: readonly string[];
  sending: Sending;
  submit: (form: HTMLFormElement) => unknown;
  children: ComponentChildren;
}): VNode {
  const { label, fields, sending, submit, children } = props;
  const others = sending.errors.filter((error) => !fields.includes(fieldOf(error)));
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault();
    submit(event.currentTarget as HTMLFormElement);
  };
  // Errors are the API's, whose words are the same for programs and people: the browser does not check before.
  return html`<form ref=${sending.form} onSubmit=${onSubmit} aria-label=${label} aria-busy=${sending.isBusy} novalidate>
    <${Shown.Provider} value=${{ id: useId(), errors: sending.errors }}>${children}<//>
    <p class="error others" role="alert" tabindex="-1">${messagesOf(others)}</p>
  </form>`;
}

/** A labelled input (or what `as` names), with what is wrong with it. Further properties are the input's own. */
export function Field(props: {
  name: string;
  label: string;
  as?: string;
  children?: ComponentChildren;
  [own: string]: unknown;
}): VNode {
  const { name, label, as = 'input', children, ...own } = props;
  const { attributes, ErrorText } = useField(name);
  return html`<label>${label} <${as} name=${name} ...${attributes} ...${own}>${children}<//></label>${ErrorText}`;
}

/** Boxes to be ticked, which are one field. */
export function Choices(props: {
  name: string;
  label: string;
  values: readonly string[];
  chosen: readonly string[];
}): VNode {
  const { name, label, values, chosen } = props;
  const { attributes, ErrorText } = useField(name);
  return html`<fieldset><legend>${label}</legend>${values.map(
    (value) =>
      html`<label><input type="checkbox" name=${name} value=${value} defaultChecked=${chosen.includes(value)} ...${attributes} /> ${value}</label>`,
  )}</fieldset>${ErrorText}`;
}

/** Separated by commas or blanks. */
export function wordsOf(text: FormDataEntryValue | null): string[] {
  return String(text ?? '')
    .split(/[\s,]+/)
    .filter((word) => word !== '');
}

/** The error messages of an input of this name, and the attributes that connect it with them. */
export function useField(name: string) {
  const { id, errors } = useContext(Shown);
  const own = errors.filter((error) => fieldOf(error) === name);
  const errorId = `${id}-${name}`;
  return {
    attributes: {
      'aria-invalid': own.length > 0 ? 'true' : undefined,
      'aria-describedby': own.length > 0 ? errorId : undefined,
    },
    ErrorText: html`<span id=${errorId} class="error" role="alert">${messagesOf(own)}</span>`,
  };
}

/** The top-level field: `points` for `points[3].lat`. */
function fieldOf({ field }: FieldError): string {
  return field?.split(/[.[]/, 1)[0] ?? '';
}

function messagesOf(errors: readonly FieldError[]): string {
  return errors.map(({ message }) => message).join('; ');
}

/** A button that asks once more before it does what cannot be undone; Escape, or leaving it, is a no. */
export function Confirm({
  label,
  sure,
  run,
}: {
  label: string;
  /** What the button says when it asks. */
  sure: string;
  run: () => unknown;
}): VNode {
  const [isAsked, setAsked] = useState(false);
  const onClick = (): void => {
    setAsked(!isAsked);
    if (isAsked) run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape' || !isAsked) return;
    event.stopPropagation();
    setAsked(false);
  };
  return html`<button type="button" class=${isAsked ? 'sure' : ''} onClick=${onClick} onKeyDown=${onKeyDown}
    onBlur=${() => setAsked(false)}>${isAsked ? sure : label}</button>`;
}

/**
 * The text of a field whose value others change, too. Typed text stays as it is until somebody else changes the value.
 * A text that is not a value yet keeps the last value.
 */
export function useDraftText<T>(
  value: T,
  format: (value: T) => string,
): { text: string; type: (text: string, value: T) => void } {
  const [typed, setTyped] = useState<{ text: string; value: T } | null>(null);
  const isOwn = typed !== null && JSON.stringify(typed.value) === JSON.stringify(value);
  return {
    text: isOwn ? typed.text : format(value),
    type: (text, to) => setTyped({ text, value: to }),
  };
}

/** What is seldom needed, below its name: out of sight until a person opens it. */
export function Fold({ label, children }: { label: string; children: ComponentChildren }): VNode {
  return html`<details class="fold"><summary>${label}</summary>${children}</details>`;
}

/** What a button opens: it takes the focus, Escape closes it, and then the focus is where it was. */
export function Panel({
  label,
  close,
  children,
}: {
  label: string;
  close: () => void;
  children: ComponentChildren;
}): VNode {
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    const panel = place.current;
    panel?.focus();
    return () => {
      const focused = document.activeElement;
      if (focused !== null && focused !== document.body && !panel?.contains(focused)) return;
      (before?.isConnected ? before : document.querySelector<HTMLElement>('main h2'))?.focus();
    };
  }, []);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.stopPropagation();
    close();
  };
  return html`<section class="panel" ref=${place} tabindex="-1" aria-label=${label} onKeyDown=${onKeyDown}>
    <div class="panel-head"><h3>${label}</h3><button type="button" class="quiet" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></div>
    ${children}
  </section>`;
}

export interface Sending {
  readonly errors: readonly FieldError[];
  readonly isBusy: boolean;
  /** The form, whose first invalid field is focused when the call was rejected. */
  readonly form: { current: HTMLFormElement | null };
  /** Asks, unless an answer is waited for; null when the call was rejected: see `errors`. */
  send<T>(ask: () => Promise<Reply<T>>): Promise<Extract<Reply<T>, { ok: true }> | null>;
  /** Says what is wrong without asking. */
  show(errors: readonly FieldError[]): void;
}

/** What a form sends and what came of it. An error without details belongs to `field`, or to the form as a whole. */
export function useSending(field: string | null = null): Sending {
  const [errors, show] = useState<readonly FieldError[]>([]);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (errors.length > 0)
      form.current?.querySelector<HTMLElement>('[aria-invalid="true"], .error.others')?.focus();
  }, [errors]);
  const send: Sending['send'] = async (ask) => {
    if (isBusy) return null;
    setBusy(true);
    const reply = await ask();
    setBusy(false);
    show(reply.ok ? [] : errorsOf(reply, field));
    return reply.ok ? reply : null;
  };
  return { errors, isBusy, form, send, show };
}

function errorsOf(
  { details, message }: Extract<Reply<unknown>, { ok: false }>,
  field: string | null,
): readonly FieldError[] {
  return details.length > 0 ? details : [{ field, message }];
}
