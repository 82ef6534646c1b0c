import { useEffect, useState } from 'preact/hooks';
import { call, type Reply } from './api.ts';

export interface Loaded<T> {
  /** Null until the first answer. */
  readonly reply: Reply<T> | null;
  reload(): void;
}

/** What a GET answers; asked again when its path changes, when it is told to, and never for a path of null. */
export function useLoaded<T>(path: string | null): Loaded<T> {
  const [reply, setReply] = useState<Reply<T> | null>(null);
  const [round, setRound] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    setReply(null);
    if (path !== null)
      void call<T>({ method: 'GET', path }).then((answer) => {
        if (isCurrent) setReply(answer);
      });
    return () => {
      isCurrent = false;
    };
  }, [path, round]);
  return { reply, reload: () => setRound((before) => before + 1) };
}
