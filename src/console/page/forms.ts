import { type ComponentChildren, createContext, type VNode } from 'preact';
import { useContext, useId } from 'preact/hooks';
import { html } from './html.ts';
import type { FieldError } from './types.ts';
import type { Sending } from './forms/sending.ts';

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

function useField(name: string) {
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
