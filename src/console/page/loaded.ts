import { useEffect, useRef, useState } from 'preact/hooks';
import { call, type Reply } from './api.ts';
import { AGAIN_MS, isRefusedForNow } from './retry.ts';

export interface Loaded<T> {
  /** Null until the first answer. While it is asked for again, the last one stands. */
  readonly reply: Reply<T> | null;
  reload(): void;
}

/**
 * What a GET answers; asked for again when the path or `round` changes, and with `reload`. What was refused for a time is
 * asked for again after half a minute.
 */
export function useLoaded<T>(path: string, round = 0): Loaded<T> {
  const [loaded, setLoaded] = useState<{ path: string; reply: Reply<T> } | null>(null);
  const [reloads, setReloads] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    let again: ReturnType<typeof setTimeout> | undefined;
    void call<T>({ method: 'GET', path }).then((reply) => {
      if (!isCurrent) return;
      setLoaded({ path, reply });
      if (isRefusedForNow(reply)) again = setTimeout(() => setReloads((before) => before + 1), AGAIN_MS);
    });
    return () => {
      isCurrent = false;
      clearTimeout(again);
    };
  }, [path, round, reloads]);
  const reply = loaded?.path === path ? loaded.reply : null;
  return { reply, reload: () => setReloads((before) => before + 1) };
}

/** The value, but changed at most once in `everyMs`: what it leads to costs a call of the account's limits. */
export function usePaced<T>(value: T, everyMs: number): T {
  const [shown, setShown] = useState(value);
  const changedAtMs = useRef(0);
  useEffect(() => {
    if (value === shown) return;
    const waitMs = Math.max(0, changedAtMs.current + everyMs - Date.now());
    const timer = setTimeout(() => {
      changedAtMs.current = Date.now();
      setShown(value);
    }, waitMs);
    return () => clearTimeout(timer);
  }, [value, shown, everyMs]);
  return shown;
}
