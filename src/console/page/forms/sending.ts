import { useEffect, useRef, useState } from 'preact/hooks';
import type { Reply } from '../api.ts';
import type { FieldError } from '../types.ts';

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
  return details.length > 0 ? details : [{ field, code: '', message }];
}
