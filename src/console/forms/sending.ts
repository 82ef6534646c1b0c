import { useEffect, useRef, useState } from 'preact/hooks';
import type { Reply } from '../api.ts';
import type { FieldError } from '../types.ts';

export interface Sending {
  readonly errors: readonly FieldError[];
  readonly isBusy: boolean;
  /** The form, whose first invalid field is focused after a refusal. */
  readonly form: { current: HTMLFormElement | null };
  /** Asks, unless an answer is waited for; null when it was refused, which `errors` then tells. */
  send<T>(ask: () => Promise<Reply<T>>): Promise<Extract<Reply<T>, { ok: true }> | null>;
  /** Says what is wrong without asking. */
  refuse(errors: readonly FieldError[]): void;
}

/** What a form sends and what came of it. An error without details belongs to `field`, or to the form as a whole. */
export function useSending(field: string | null = null): Sending {
  const [errors, refuse] = useState<readonly FieldError[]>([]);
  const [isBusy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (errors.length > 0)
      form.current?.querySelector<HTMLElement>('[aria-invalid="true"], .problem')?.focus();
  }, [errors]);
  const send: Sending['send'] = async (ask) => {
    if (isBusy) return null;
    setBusy(true);
    const reply = await ask();
    setBusy(false);
    refuse(reply.ok ? [] : errorsOf(reply, field));
    return reply.ok ? reply : null;
  };
  return { errors, isBusy, form, send, refuse };
}

function errorsOf(
  { details, message }: Extract<Reply<unknown>, { ok: false }>,
  field: string | null,
): readonly FieldError[] {
  return details.length > 0 ? details : [{ field, code: '', message }];
}
